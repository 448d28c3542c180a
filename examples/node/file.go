package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vxswitch/vxswitch/node"
)

// fileError is what is wrong with a configuration, a line each: FILE:LINE:COL: key: text.
type fileError []string

func (e fileError) Error() string { return strings.Join(e, "\n") }

// load reads a configuration. The error is a fileError, or the system's.
func load(file string) (*node.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-config: %w", err)
	}
	cfg, err := node.Parse(text)
	if err != nil {
		return nil, located(file, err)
	}
	return cfg, nil
}

// located puts the file's name before each of several errors.
func located(file string, err error) error {
	var errs node.Errors
	if !errors.As(err, &errs) {
		return err
	}
	lines := make(fileError, len(errs))
	for i, e := range errs {
		sep := ": "
		if e.Line > 0 {
			sep = ":"
		}
		lines[i] = file + sep + e.Error()
	}
	return lines
}
