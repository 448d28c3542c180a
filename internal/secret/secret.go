// Package secret reads files that settings name, such as those of passwords. Its errors do not name the file, which whoever reports them does.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// most is how many bytes of a file are read, far more than certificates have.
const most = 1 << 20

// Read returns what is in a file. A pipe or a device is an error, since a read of it may never end.
func Read(file string) (string, error) {
	text, err := read(file)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return "", path.Err
	}
	return text, err
}

func read(file string) (string, error) {
	is, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !is.Mode().IsRegular() {
		return "", fmt.Errorf("it is a %s; must be a regular file", kind(is.Mode()))
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return string(text), err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Password returns the first line of a file, of 1 to 80 bytes.
func Password(file string) (string, error) {
	text, err := Read(file)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(text, "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" || len(line) > 80 {
		return "", fmt.Errorf("the first line has %d bytes; must have 1 to 80", len(line))
	}
	return line, nil
}
