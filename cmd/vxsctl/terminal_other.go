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

// keyboard does nothing: q takes effect with Enter.
func keyboard(*os.File) (restore func()) { return func() {} }

func sizeOf(io.Writer) (cols, lines int) { return 0, 0 }
