//go:build !linux

package sys

import (
	"errors"
	"net"
)

// Links is not implemented on this system: no value of it exists.
type Links struct{}

// LinkInfo describes a device.
type LinkInfo struct {
	Index    int
	Name     string
	Kind     string
	PortOf   string
	MTU      int
	Ethernet bool
	Peer     int
	PeerNS   int
	MAC      [6]byte
}

// Numbers that are no number of a namespace.
const (
	Here     = -2
	NoNumber = -1
)

// A LinkChange says what to set on a device.
type LinkChange struct {
	MTU        int
	MAC        [6]byte
	Up, NoIPv6 bool
}

// Features of a device.
const (
	FeatureGRO = iota
	FeatureTSO
)

// A VethEnd is what an end of a new veth pair is to be like.
type VethEnd struct {
	In   *Links
	Name string
	MTU  int
	MAC  net.HardwareAddr
}

// A Redirect says where a program sends what its interface receives.
type Redirect struct {
	Index int
	Peer  bool
	Own   [6]byte
}

// BPFLink is not implemented on this system: no value of it exists.
type BPFLink struct{}

func OpenLinks() (*Links, error)                              { return nil, errors.ErrUnsupported }
func NewNamespace() (*Links, error)                           { return nil, errors.ErrUnsupported }
func (l *Links) Close()                                       {}
func (l *Links) Do(f func() error) error                      { return errors.ErrUnsupported }
func (l *Links) Namespace() (uint64, error)                   { return 0, errors.ErrUnsupported }
func (l *Links) ByName(name string) (LinkInfo, error)         { return LinkInfo{}, errors.ErrUnsupported }
func (l *Links) ByIndex(index, ns int) (LinkInfo, error)      { return LinkInfo{}, errors.ErrUnsupported }
func (l *Links) ID(other *Links) (int, error)                 { return 0, errors.ErrUnsupported }
func (l *Links) Change(index int, c LinkChange) error         { return errors.ErrUnsupported }
func (l *Links) Feature(int, uint32, bool) error              { return errors.ErrUnsupported }
func (l *Links) Delete(index int) error                       { return errors.ErrUnsupported }
func AddVeth(a, b VethEnd) error                              { return errors.ErrUnsupported }
func AttachRedirect(index int, to Redirect) (*BPFLink, error) { return nil, errors.ErrUnsupported }
func (l *BPFLink) Close()                                     {}
