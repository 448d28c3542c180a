package datapath

import (
	"errors"
	"fmt"
)

// DefaultFlows is the default of Config.Flows.
const DefaultFlows = 16384

// maxFlows keeps the memory of the tables under some hundred megabytes.
const maxFlows = 1 << 20

// A Config configures a Datapath. The zero value is ready to use.
type Config struct {
	Flows int // entries of each of the tables out, in and tuples, at most 1048576; default 16384
}

func (c *Config) flows() (int, error) {
	switch {
	case c == nil || c.Flows == 0:
		return DefaultFlows, nil
	case c.Flows < 0 || c.Flows > maxFlows:
		return 0, fmt.Errorf("datapath: Flows is %d; must be 1 to %d, or 0 for %d", c.Flows, maxFlows, DefaultFlows)
	}
	return c.Flows, nil
}

// ErrExist is returned by Put for a key that has an entry: entries never change.
var ErrExist = errors.New("datapath: the key has an entry; delete it first")

// ErrFull is returned by Put if the table is full.
var ErrFull = errors.New("datapath: the table is full; Config.Flows may be larger")

// A Direction is where on a port frames are taken.
type Direction uint8

// Directions.
const (
	In  Direction = iota // what the device receives: of a veth end or a card, beyond which the host of the port is
	Out                  // what this host sends into the device: of a TAP that is the host's own interface
)

// A Program is one of the three programs.
type Program uint8

// Programs.
const (
	PortIn   Program = iota // tcx ingress of a port
	PortOut                 // tcx egress of a port
	TunnelIn                // tcx ingress of an underlay device
)

// An Action is what a program has done with a frame.
type Action int32

// Actions (TCX_NEXT, TCX_DROP and TCX_REDIRECT of the kernel).
const (
	Miss     Action = -1 // on to the next program, or the stack
	Dropped  Action = 2
	Redirect Action = 7
)

// A Meta is what the kernel knows of a frame beside its bytes.
type Meta struct {
	Ifindex uint32 // where it is; 0 stands for 1, the loopback
	Mark    uint32
	GSOSize uint32 // of a superframe: payload of each segment
	GSOSegs uint32
	Tag     uint32 // type and TCI of the VLAN tag that the kernel has taken out of the bytes, such as 0x81000005; 0: none

	Complete bool // the card has summed up the bytes (CHECKSUM_COMPLETE); Linux 6.16, which then checks the sum of what is left
}
