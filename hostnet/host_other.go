//go:build !linux

package hostnet

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
)

// A Host is for Linux.
type Host struct{}

// Open is for Linux: elsewhere its error wraps [errors.ErrUnsupported].
func Open(cfg *Config) (*Host, error) {
	return nil, fmt.Errorf("hostnet: it needs Linux: %w", errors.ErrUnsupported)
}

// Forget is for Linux.
func Forget(namespace string, networks []netip.Prefix, keep ...string) error {
	return errors.ErrUnsupported
}

// SetRoutes is for Linux.
func (h *Host) SetRoutes(routes ...Route) error { return errors.ErrUnsupported }

// UpdateRoutes is for Linux.
func (h *Host) UpdateRoutes(add, del []Route) error { return errors.ErrUnsupported }

// Waiting is for Linux.
func (h *Host) Waiting() iter.Seq2[Route, error] { return func(func(Route, error) bool) {} }

// Routes is for Linux.
func (h *Host) Routes() iter.Seq[Route] { return func(func(Route) bool) {} }

// Check is for Linux.
func (h *Host) Check() []error { return []error{errors.ErrUnsupported} }

// Leave is for Linux.
func (h *Host) Leave() {}

// Delete is for Linux.
func (h *Host) Delete() error { return nil }

// Close is for Linux.
func (h *Host) Close() error { return nil }
