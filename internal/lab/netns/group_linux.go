package netns

import (
	"errors"
	"os/exec"
	"syscall"
)

// group makes a command the leader of a process group, and has the end of its context kill
// the whole group.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
