//go:build !linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Nothing is measured on other systems.

type lab struct{}

func newLab(context.Context) (*lab, error) {
	return nil, fmt.Errorf("network namespaces: %w on %s", errors.ErrUnsupported, runtime.GOOS)
}

func (*lab) close() error { return nil }

func groups() []group { return nil }

func kernel() string { return "" }

func inside([]string) bool { return false }
