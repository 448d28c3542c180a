// Package secret reads files that settings name, such as those of passwords. Its errors do not name the file, which whoever reports them does.
package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Read returns what is in a file.
func Read(file string) (string, error) {
	text, err := os.ReadFile(file)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return "", path.Err
	}
	return string(text), err
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
