//go:build unix

package vcs

const nowhere = "/dev/null"
