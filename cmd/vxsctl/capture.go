package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// Blocks of pcapng (draft-ietf-opsawg-pcapng, section 4).
const (
	statsBlock  = 5
	packetBlock = 6
	maxBlock    = 16 << 20

	// section is the first block of a file: little endian, version 1.0, unknown length.
	section = "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"
)

// farewell is how long the node may take to end a capture.
const farewell = 5 * time.Second

// places are where packets are captured, if not everywhere.
var places = []string{"port", "tunnel", "vni"}

// capture writes packets to a file, or to standard output, until ctx is done or there are enough.
func (s *session) capture(ctx context.Context, w *words) error {
	q, file, err := w.captured()
	if err != nil {
		return err
	}
	if file == "-" && isTerminal(s.out) {
		return w.wrong("packets are not for a terminal: add -w FILE, or | tcpdump -r -")
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	begun := context.AfterFunc(ctx, cancel)
	body, err := s.Capture(asking, q)
	if begun(); err != nil && ctx.Err() != nil {
		return nil
	}
	if said := (*api.Error)(nil); errors.As(err, &said) && said.Status == http.StatusNotFound && q["port"] != "" {
		said.Text += `; a filter that begins with "port" comes after "--"`
	}
	if err != nil {
		return err
	}
	defer body.Close()
	out := s.out
	if file != "-" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	fmt.Fprintf(s.notice, "capturing %s to %s, until it is interrupted\n", place(q), target(file))
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(farewell, func() { body.Close() })
		if body.End() != nil {
			body.Close()
		}
	})()
	n, err := blocks(out, body)
	if ctx.Err() != nil && errors.Is(err, api.ErrEnded) {
		err = nil // as it was asked to
	}
	fmt.Fprintf(s.notice, "%s captured\n", packets(uint64(n.packets)))
	if n.ended {
		fmt.Fprintf(s.notice, "%s received by filter\n%s dropped\n", packets(n.matched), packets(n.dropped))
		if q["count"] == strconv.Itoa(n.packets) && errors.Is(err, api.ErrEnded) {
			err = nil
		}
	}
	if f, ok := out.(*os.File); ok && file != "-" && (err == nil || errors.Is(err, api.ErrEnded)) {
		err = errors.Join(err, f.Close())
	}
	return err
}

func packets(n uint64) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprint(n, " packets")
}

// captured reads the command line: the place, flags, and the filter. As for tcpdump, flags may stand anywhere before "--".
func (w *words) captured() (q api.Query, file string, err error) {
	if w.to != nil {
		w.offerCapture()
		return nil, "", errOffered
	}
	q, file = api.Query{}, "-"
	var filter []string
	flags := map[string]string{"-w": "", "-c": "count", "-s": "snaplen"}
	for args := w.rest; len(args) > 0; args = args[1:] {
		a := args[0]
		placed := slices.ContainsFunc(places, func(p string) bool { return q[p] != "" })
		key, flag := flags[a]
		switch {
		case a == "--":
			filter, args = append(filter, args[1:]...), args[:1]
			continue
		case flag:
		case slices.Contains(places, a) && !placed && len(filter) == 0:
			key = a
		case len(a) > 1 && a[0] == '-' && (a[1] < '0' || a[1] > '9'):
			if err := w.misplaced(a); err != nil {
				return nil, "", err
			}
			return nil, "", w.wrong("unexpected %q; flags are -w FILE, -c COUNT and -s SNAPLEN", a)
		default:
			filter = append(filter, a)
			continue
		}
		if len(args) == 1 {
			return nil, "", w.wrong("%s: value is missing, must be %s", a, w.value(a).text)
		}
		v := args[1]
		args = args[1:]
		if err := w.check(a, v); err != nil {
			return nil, "", err
		}
		switch {
		case a == "-w":
			file = v
		case a == "-c", a == "-s" && count(v) > 0:
			q[key] = strconv.Itoa(count(v))
		case a != "-s":
			q[key] = v
		}
	}
	if len(filter) > 0 {
		q["filter"] = strings.Join(filter, " ")
	}
	if q["filter"] == "-" {
		return nil, "", w.wrong(`unexpected "-": without -w FILE, packets go to standard output`)
	}
	return q, file, nil
}

// offerCapture offers what may come next: a filter is the user's.
func (w *words) offerCapture() {
	before, flags := w.rest[:len(w.rest)-1], []string{"-w", "-c", "-s"}
	if n := len(before); n > 0 && slices.Contains(append(flags, places...), before[n-1]) {
		w.to.value(w.value(before[n-1]))
		return
	}
	w.to.add(flags...)
	if len(before) == 0 {
		w.to.add(places...)
	}
}

// place says where packets are captured.
func place(q api.Query) string {
	for _, k := range places {
		if v, ok := q[k]; ok {
			return "on " + k + " " + v
		}
	}
	return "on all ports and tunnels"
}

// A tally is what a capture was.
type tally struct {
	packets          int    // written
	matched, dropped uint64 // as the node says
	ended            bool   // by the node, with its statistics
}

// blocks copies complete blocks and counts packets. Without any block it writes a section without packets, since an empty
// file is not pcapng.
func blocks(w io.Writer, from io.Reader) (n tally, err error) {
	some, to := false, bufio.NewWriterSize(w, 64<<10)
	defer func() {
		if !some {
			to.WriteString(section)
		}
		if e := to.Flush(); e != nil {
			err = e
		}
	}()
	in, order := bufio.NewReaderSize(from, 64<<10), binary.ByteOrder(binary.LittleEndian)
	var block []byte
	for {
		if in.Buffered() < 12 { // nothing more for now
			if err := to.Flush(); err != nil {
				return n, err
			}
		}
		head, err := in.Peek(12)
		if err != nil {
			return n, api.ErrEnded
		}
		if binary.BigEndian.Uint32(head) == 0x0a0d0d0a && binary.BigEndian.Uint32(head[8:]) == 0x1a2b3c4d {
			order = binary.BigEndian
		}
		size := order.Uint32(head[4:])
		if size < 12 || size > maxBlock {
			return n, errors.New("the node did not send pcapng")
		}
		if cap(block) < int(size) {
			block = make([]byte, size)
		}
		block = block[:size]
		if _, err := io.ReadFull(in, block); err != nil {
			return n, api.ErrEnded
		}
		if _, err := to.Write(block); err != nil {
			return n, err
		}
		some = true
		switch order.Uint32(block) {
		case packetBlock:
			n.packets++
		case statsBlock:
			n.statistics(block, order)
		}
	}
}

// statistics reads the options of the block behind its number and time: code, length, value, padding to 4 bytes.
func (n *tally) statistics(block []byte, order binary.ByteOrder) {
	const received, dropped = 4, 5
	for b := block[min(20, len(block)):]; len(b) >= 4; {
		code, size := order.Uint16(b), int(order.Uint16(b[2:]))
		if b = b[4:]; size > len(b) || code == 0 {
			return
		}
		switch {
		case code == received && size == 8:
			n.matched, n.ended = order.Uint64(b), true
		case code == dropped && size == 8:
			n.dropped = order.Uint64(b)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
}

// target names where packets go.
func target(file string) string {
	if file == "-" {
		return "standard output"
	}
	return file
}
