//go:build !linux

package main

import (
	"io"
	"os"
)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// keyboard does nothing: here q counts with the end of its line.
func keyboard(*os.File) (restore func()) { return func() {} }
