package vswitch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A wire is a port of one's own: it carries one Ethernet frame in each message of c. As it
// says nothing about offloads, what it is given can be sent as it is.
type wire struct {
	c     io.ReadWriter // safe for concurrent use, as a net.Conn is
	close func() error  // once
	buf   [frame.Headroom + 1518]byte
}

func (w *wire) Readers() []frame.Reader { return []frame.Reader{w} }
func (w *wire) Writer(int) frame.Writer { return w }
func (w *wire) MTU(uint16) int          { return 1514 }
func (w *wire) Close() error            { return w.close() }

func (w *wire) Read(b *frame.Batch) error {
	b.Release()
	n, err := w.c.Read(w.buf[frame.Headroom:])
	if err == nil {
		b.Borrow(w.buf[:], frame.Headroom, frame.Headroom+n)
	}
	return err
}

func (w *wire) Write(out []frame.Out) error {
	for i := range out {
		if _, err := w.c.Write(out[i].F.Bytes()); err != nil {
			out[i].Drop = frame.SendFailed
		}
	}
	return nil
}

// A port of one's own needs the four methods of Port, a Read and a Write.
func ExamplePort() {
	far, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	defer far.Close()
	near, err := net.DialUDP("udp", nil, far.LocalAddr().(*net.UDPAddr))
	must(err)

	sw, err := vswitch.New(nil)
	must(err)
	vsi, err := sw.VSI(1, nil)
	must(err)
	alice := port.NewPipe(nil)
	_, err = vsi.Attach(alice, 0)
	must(err)
	_, err = vsi.Attach(&wire{c: near, close: sync.OnceValue(near.Close)}, 0)
	must(err)
	go sw.Run(context.Background())
	defer sw.Close()

	hello := append([]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // to everybody
		2, 0, 0, 0, 0, 1, // from alice
		0x88, 0xb5, // local experimental EtherType
	}, "hello"...)
	must(alice.Send(hello))
	b := make([]byte, 1518)
	n, err := far.Read(b)
	must(err)
	fmt.Printf("%s\n", b[14:n])
	// Output: hello
}
