// Package datagrams has what underlays share: access to the pieces of a [frame.Datagram], accounting, the sets that Set
// selects, and on Linux receiving (Inbox) and sending (Outbox) of messages.
package datagrams

import "github.com/vxswitch/vxswitch/frame"

const (
	DefaultTTL    = 64      // hop limit of datagrams without one
	DefaultMTU    = 1500    // if the interface is unknown
	DefaultBuffer = 4 << 20 // bytes of a socket buffer
)

// Lose counts one copy of d as not sent.
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

// Segments returns the number of datagrams that d is on the wire.
func Segments(d *frame.Datagram) int {
	if n := Size(d); d.Seg != 0 && n > 0 {
		return (n + int(d.Seg) - 1) / int(d.Seg)
	}
	return 1
}

// A Cursor is a position in the pieces of a payload.
type Cursor struct {
	parts [][]byte
	off   int // in the first piece
}

// At returns a Cursor n bytes into a payload.
func At(parts [][]byte, n int) Cursor {
	c := Cursor{parts: parts}
	c.Skip(n)
	return c
}

// Next advances the Cursor by at most n bytes and returns them: bytes of one piece, none at the end.
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

// Skip advances the Cursor by n bytes.
func (c *Cursor) Skip(n int) {
	for n > 0 && len(c.parts) > 0 {
		n -= len(c.Next(n))
	}
}
