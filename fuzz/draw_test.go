package fuzz

import "encoding/binary"

// A draw takes choices out of the input, byte by byte. Beyond its end every choice is the
// first one, so that each input means something and a shorter one means less.
type draw struct{ in []byte }

func (d *draw) byte() byte {
	if len(d.in) == 0 {
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *draw) word() uint16 {
	return binary.BigEndian.Uint16([]byte{d.byte(), d.byte()})
}

func (d *draw) flag() bool { return d.byte()&1 != 0 }

// under returns a number from 0 to n-1.
func (d *draw) under(n int) int { return int(d.byte()) % n }

// bytes returns the next n bytes, or those that are left.
func (d *draw) bytes(n int) []byte {
	n = min(n, len(d.in))
	b := d.in[:n:n]
	d.in = d.in[n:]
	return b
}

// pick returns one of several values.
func pick[T any](d *draw, of ...T) T { return of[d.under(len(of))] }
