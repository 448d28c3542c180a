//go:build !linux

package datapath

import (
	"errors"
	"io"
)

// A Datapath is the loaded programs and their tables: see the documentation for Linux. Elsewhere there is none.
type Datapath struct{}

// Load returns errors.ErrUnsupported.
func Load(*Config) (*Datapath, error) { return nil, errors.ErrUnsupported }

// Grace returns errors.ErrUnsupported.
func Grace() error { return errors.ErrUnsupported }

// The methods are never called.

func (*Datapath) Close() error                                 { return nil }
func (*Datapath) Epoch(uint32) uint64                          { return 0 }
func (*Datapath) Bump(uint32) uint64                           { return 0 }
func (*Datapath) Slots() int                                   { return 0 }
func (*Datapath) Slot(uint32) *Slot                            { return nil }
func (*Datapath) PutOut(OutKey, *Flow) error                   { return errors.ErrUnsupported }
func (*Datapath) PutIn(InKey, *Flow) error                     { return errors.ErrUnsupported }
func (*Datapath) DeleteOut(...OutKey) error                    { return errors.ErrUnsupported }
func (*Datapath) DeleteIn(...InKey) error                      { return errors.ErrUnsupported }
func (*Datapath) Misses() (Misses, error)                      { return Misses{}, errors.ErrUnsupported }
func (*Datapath) AttachPort(int, Direction) (io.Closer, error) { return nil, errors.ErrUnsupported }
func (*Datapath) AttachUnderlay(int) (io.Closer, error)        { return nil, errors.ErrUnsupported }
func (*Datapath) Beacon(int) (io.Closer, error)                { return nil, errors.ErrUnsupported }
func (*Datapath) Run(Program, []byte, Meta) (Action, []byte, Meta, error) {
	return 0, nil, Meta{}, errors.ErrUnsupported
}
