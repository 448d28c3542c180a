//go:build !linux

package sys

import (
	"errors"
	"os"
	"syscall"
)

// TunSupported says whether OpenTAP can work on this system.
const TunSupported = false

// EBADFD has no equal on this system.
const EBADFD = syscall.Errno(0xffff)

// Tun is not implemented on this system: no value of it exists.
type Tun struct {
	File *os.File
	Conn syscall.RawConn
}

func OpenTAP(name string) (*Tun, error) { return nil, errors.ErrUnsupported }
func (t *Tun) Close() error             { return errors.ErrUnsupported }
func (t *Tun) Name() (string, error)    { return "", errors.ErrUnsupported }
func (t *Tun) MTU() (int, error)        { return 0, errors.ErrUnsupported }
func (t *Tun) SetMTU(mtu int) error     { return errors.ErrUnsupported }
func (t *Tun) SetMAC(mac [6]byte) error { return errors.ErrUnsupported }
func (t *Tun) Up() error                { return errors.ErrUnsupported }

func ReadFD(fd uintptr, p []byte) (int, syscall.Errno)  { return 0, syscall.ENOSYS }
func WriteFD(fd uintptr, p []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

// Pair is not implemented on this system.
type Pair struct{}

func (v *Pair) WriteFD(fd uintptr, a, b []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
