package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vxswitch/vxswitch/api"
)

// Blocks of pcapng (draft-ietf-opsawg-pcapng, section 3.1).
const (
	packetBlock = 6
	maxBlock    = 16 << 20

	// section is the first block of a file: little endian, version 1.0, unknown length.
	section = "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"
)

// capture writes packets to a file, or to standard output, until ctx is done.
func (s *session) capture(ctx context.Context, w *words) error {
	if len(w.rest) != 1 {
		return w.wrong("requires one file name, or - for standard output")
	}
	body, err := s.Capture(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if w.rest[0] == "-" {
		_, err = blocks(s.out, body)
		return err
	}
	f, err := os.Create(w.rest[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(s.notice, "capturing to %s, until it is interrupted\n", w.rest[0])
	n, err := blocks(f, body)
	if e := f.Close(); e != nil {
		err = e
	}
	fmt.Fprintf(s.notice, "%d packets\n", n)
	return err
}

// blocks copies complete blocks and counts packets. Without any block it writes a section without packets, since an empty
// file is not pcapng.
func blocks(to io.Writer, from io.Reader) (packets int, err error) {
	some := false
	defer func() {
		if !some {
			io.WriteString(to, section)
		}
	}()
	in, order := bufio.NewReaderSize(from, 64<<10), binary.ByteOrder(binary.LittleEndian)
	var block []byte
	for {
		head, err := in.Peek(12)
		if err != nil {
			return packets, api.ErrEnded
		}
		if binary.BigEndian.Uint32(head) == 0x0a0d0d0a && binary.BigEndian.Uint32(head[8:]) == 0x1a2b3c4d {
			order = binary.BigEndian
		}
		n := order.Uint32(head[4:])
		if n < 12 || n > maxBlock {
			return packets, errors.New("the node did not send pcapng")
		}
		if cap(block) < int(n) {
			block = make([]byte, n)
		}
		block = block[:n]
		if _, err := io.ReadFull(in, block); err != nil {
			return packets, api.ErrEnded
		}
		if _, err := to.Write(block); err != nil {
			return packets, err
		}
		some = true
		if order.Uint32(block) == packetBlock {
			packets++
		}
	}
}
