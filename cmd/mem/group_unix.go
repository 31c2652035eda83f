//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup lets a program and all that it starts be ended together.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
