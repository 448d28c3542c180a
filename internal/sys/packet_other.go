//go:build !linux

package sys

import (
	"errors"
	"os"
	"syscall"
)

// PacketSocket is not implemented on this system: no value of it exists.
type PacketSocket struct {
	File *os.File
	Conn syscall.RawConn
}

// PacketMode says what a PacketSocket is for.
type PacketMode struct {
	Receive, Vnet, Shut bool
	Buffer              int
}

func OpenPacket(m PacketMode) (*PacketSocket, error)       { return nil, errors.ErrUnsupported }
func (s *PacketSocket) Index(name string) (int, error)     { return 0, errors.ErrUnsupported }
func (s *PacketSocket) Bind(index int, receive bool) error { return errors.ErrUnsupported }
func (s *PacketSocket) Join(other *PacketSocket) error     { return errors.ErrUnsupported }
func (s *PacketSocket) Promiscuous(index int) error        { return errors.ErrUnsupported }
func (s *PacketSocket) Buffer(receive bool) int            { return 0 }
func (s *PacketSocket) Filter(prog []SockFilter) error     { return errors.ErrUnsupported }
func PacketUSO() bool                                      { return false }
func (s *PacketSocket) Drops() (uint32, bool)              { return 0, false }

// SockFilter is an instruction of a filter.
type SockFilter struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// PacketReader is not implemented on this system.
type PacketReader struct{}

// PacketAux is what the kernel says beside a frame.
type PacketAux struct {
	VLAN            bool
	TPID, TCI       uint16
	Unfinished, Cut bool
}

func (r *PacketReader) Read(fd uintptr, head, p []byte) (int, PacketAux, syscall.Errno) {
	return 0, PacketAux{}, syscall.ENOSYS
}

// LinkWatch is not implemented on this system: no value of it exists.
type LinkWatch struct{}

// LinkState is what is known of an interface.
type LinkState struct {
	MTU                     int
	Carrier, Ethernet, Gone bool
}

func WatchLink(index int) (*LinkWatch, error) { return nil, errors.ErrUnsupported }
func (w *LinkWatch) Close()                   {}
func (w *LinkWatch) Next() (LinkState, error) { return LinkState{}, errors.ErrUnsupported }
