package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/setting"
)

// A fileError has the errors of a file, a line each: FILE:LINE:COL: key: text.
type fileError []string

func (e fileError) Error() string { return strings.Join(e, "\n") }

const (
	maxFile  = 16 << 20        // bytes of a configuration
	slowFile = 5 * time.Second // timeout for a pipe
)

// load reads a configuration. The error is a fileError or one of the system.
func load(name string) (*file.Config, error) {
	text, err := readFile(name, maxFile, slowFile)
	if err != nil {
		return nil, fmt.Errorf("-config: %w", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fileError{name + ": empty file; use {} for a node that does nothing"}
	}
	cfg, err := file.Parse(text)
	if err != nil {
		return nil, located(name, err)
	}
	errs := setting.Errors{}
	for i, p := range cfg.Ports {
		if p.Owner != "" {
			errs = append(errs, &setting.Error{Path: fmt.Sprintf("ports[%d].owner", i), Value: p.Owner, Text: "not in a file: the program adds this port over the socket; leave it and its members out"})
		}
	}
	if len(errs) > 0 {
		return nil, located(name, errs)
	}
	return cfg, nil
}

// readFile reads a file, or a pipe with a timeout, to its end.
func readFile(file string, limit int64, long time.Duration) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(long))
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s: larger than %d bytes", file, limit)
	}
	return text, nil
}

// located adds the name of the file to each error.
func located(file string, err error) error {
	var errs setting.Errors
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
