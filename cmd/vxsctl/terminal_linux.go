package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := control(f, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
	return err == nil
}

// sizeOf returns the columns and lines of a terminal, 0 if they are unknown.
func sizeOf(w io.Writer) (cols, lines int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := control(f, func(fd int) (*unix.Winsize, error) { return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) })
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// keyboard turns off line buffering and echo. It returns a function that restores them.
func keyboard(in *os.File) (restore func()) {
	if in == nil {
		return func() {}
	}
	old, err := control(in, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
	if err != nil {
		return func() {}
	}
	set := func(t unix.Termios) {
		control(in, func(fd int) (any, error) { return nil, unix.IoctlSetTermios(fd, unix.TCSETS, &t) })
	}
	now := *old
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	set(now)
	return func() { set(*old) }
}

// control calls f with the descriptor of a file without changing its mode.
func control[T any](file *os.File, f func(fd int) (T, error)) (v T, err error) {
	c, err := file.SyscallConn()
	if err != nil {
		return v, err
	}
	if e := c.Control(func(fd uintptr) { v, err = f(int(fd)) }); e != nil {
		err = e
	}
	return v, err
}
