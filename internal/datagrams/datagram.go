// Package datagrams is what underlays have in common: how a [frame.Datagram] is taken apart, booked
// and counted, what its Set chooses from and, on Linux, how messages come in (Inbox) and leave
// (Outbox).
package datagrams

import "github.com/vxswitch/vxswitch/frame"

const (
	DefaultTTL    = 64      // hop limit of datagrams that name none
	DefaultMTU    = 1500    // assumed where no interface can be named
	DefaultBuffer = 4 << 20 // of a socket, in bytes
)

// Lose books one copy of d as not sent.
func Lose(d *frame.Datagram, why frame.Reason) {
	if int(d.Lost) < len(d.To) && d.Lost < 1<<16-1 {
		d.Lost++
	}
	d.Drop = why
}

// Size returns the bytes of a datagram's payload.
func Size(d *frame.Datagram) int {
	n := 0
	for _, p := range d.Parts {
		n += len(p)
	}
	return n
}

// Segments returns how many datagrams d is on the wire.
func Segments(d *frame.Datagram) int {
	if n := Size(d); d.Seg != 0 && n > 0 {
		return (n + int(d.Seg) - 1) / int(d.Seg)
	}
	return 1
}

// A Cursor is a place in the pieces of a payload.
type Cursor struct {
	parts [][]byte
	off   int // in the first
}

// At returns a Cursor n bytes into a payload.
func At(parts [][]byte, n int) Cursor {
	c := Cursor{parts: parts}
	c.Skip(n)
	return c
}

// Next moves the Cursor on, by at most n bytes, and returns what it passed: bytes that lie in one
// piece, none at the end.
func (c *Cursor) Next(n int) []byte {
	for len(c.parts) > 0 {
		p := c.parts[0][c.off:]
		if len(p) > n {
			c.off += n
			return p[:n]
		}
		c.parts, c.off = c.parts[1:], 0
		if len(p) > 0 {
			return p
		}
	}
	return nil
}

// Skip moves the Cursor n bytes on.
func (c *Cursor) Skip(n int) {
	for n > 0 && len(c.parts) > 0 {
		n -= len(c.Next(n))
	}
}
