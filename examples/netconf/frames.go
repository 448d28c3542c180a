package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxMessage = 16 << 20
	endOfOld   = "]]>]]>" // ends a message in the framing of NETCONF 1.0
)

// Frames are the messages of a session in the framing of RFC 6242, section 4.
type frames struct {
	in      *bufio.Reader
	out     io.Writer
	chunked bool // both sides have base:1.1
}

func newFrames(rw io.ReadWriter) *frames { return &frames{in: bufio.NewReader(rw), out: rw} }

var errFraming = errors.New("no NETCONF message")

func (f *frames) read() ([]byte, error) {
	if f.chunked {
		return f.readChunks()
	}
	var all []byte
	for !bytes.HasSuffix(all, []byte(endOfOld)) {
		some, err := f.in.ReadSlice('>')
		if all = append(all, some...); len(all) > maxMessage {
			return nil, errFraming
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	return all[:len(all)-len(endOfOld)], nil
}

func (f *frames) readChunks() (all []byte, err error) {
	for {
		var head [3]string // "", "#" and a length, or "##"
		for i := range 2 {
			line, err := f.in.ReadSlice('\n')
			if err != nil || len(line) > 12 {
				return nil, errors.Join(errFraming, err)
			}
			head[i] = string(bytes.TrimSuffix(line, []byte("\n")))
		}
		if head[0] != "" || !strings.HasPrefix(head[1], "#") {
			return nil, errFraming
		}
		if head[1] == "##" && len(all) > 0 {
			return all, nil
		}
		n, err := strconv.ParseUint(head[1][1:], 10, 32)
		if err != nil || n == 0 || uint64(len(all))+n > maxMessage {
			return nil, errFraming
		}
		from := len(all)
		all = append(all, make([]byte, n)...)
		if _, err := io.ReadFull(f.in, all[from:]); err != nil {
			return nil, err
		}
	}
}

func (f *frames) write(b []byte) (err error) {
	if f.chunked {
		_, err = fmt.Fprintf(f.out, "\n#%d\n%s\n##\n", len(b), b)
	} else {
		_, err = fmt.Fprintf(f.out, "%s%s", b, endOfOld)
	}
	return err
}
