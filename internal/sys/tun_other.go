//go:build !linux

package sys

import (
	"errors"
	"os"
	"syscall"
)

// TunSupported says whether OpenTun can work on this system.
const TunSupported = false

// EBADFD has no equal on this system.
const EBADFD = syscall.Errno(0xffff)

// ErrNamespace is wrapped by the error of a thread that may not enter a namespace.
var ErrNamespace = errors.New("entering the network namespace")

// TunMode is what a device of the tun driver is.
type TunMode struct{ TUN, Multi, Vnet, New bool }

// TunInfo is what the kernel says about the device of a queue.
type TunInfo struct {
	TunMode
	Name    string
	Persist bool
	Header  int
}

// Tun is not implemented on this system: no value of it exists.
type Tun struct {
	File *os.File
	Conn syscall.RawConn
}

func OpenTun(name string, m TunMode) (*Tun, error) { return nil, errors.ErrUnsupported }
func TakeTun(f *os.File) (*Tun, error)             { return nil, errors.ErrUnsupported }
func (t *Tun) Close() error                        { return errors.ErrUnsupported }
func (t *Tun) Info() (TunInfo, error)              { return TunInfo{}, errors.ErrUnsupported }
func (t *Tun) SetPersist() error                   { return errors.ErrUnsupported }
func (t *Tun) SetOffload(on bool) (bool, error)    { return false, errors.ErrUnsupported }

// Link is not implemented on this system: no value of it exists.
type Link struct{}

func NewLink(t *Tun) (*Link, error)      { return nil, errors.ErrUnsupported }
func (l *Link) Close()                   {}
func (l *Link) MTU() (int, error)        { return 0, errors.ErrUnsupported }
func (l *Link) SetMTU(mtu int) error     { return errors.ErrUnsupported }
func (l *Link) SetMAC(mac [6]byte) error { return errors.ErrUnsupported }
func (l *Link) Up() error                { return errors.ErrUnsupported }
func (l *Link) Carrier() (bool, error)   { return false, errors.ErrUnsupported }

func (l *Link) Place() (index int, ns uint64, err error) { return 0, 0, errors.ErrUnsupported }

func (l *Link) PacketInfo() (bool, error) { return false, errors.ErrUnsupported }

func TunTaken(name string) bool                         { return false }
func Kind(name string) (driver, kind string)            { return "", "" }
func InNamespace(path string, f func() error) error     { return errors.ErrUnsupported }
func ReadFD(fd uintptr, p []byte) (int, syscall.Errno)  { return 0, syscall.ENOSYS }
func WriteFD(fd uintptr, p []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

// Gather is not implemented on this system.
type Gather struct{}

func (g *Gather) WriteFD(fd uintptr, parts [][]byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
