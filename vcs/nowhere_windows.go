package vcs

const nowhere = "NUL"
