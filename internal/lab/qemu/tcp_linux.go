package qemu

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// SendTCP sends zeros from the guest to an address of a host, port 9000: size bytes, a multiple of 64 KiB. All of them must arrive.
func (g *Guest) SendTCP(h *netns.Host, to string, size int64) {
	g.t.Helper()
	in := netns.Open(g.t, h, func() (net.Listener, error) { return net.Listen("tcp", net.JoinHostPort(to, "9000")) })
	got := make(chan int64, 1)
	go func() {
		c, err := in.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(netns.Timeout))
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	g.Run(fmt.Sprintf("dd if=/dev/zero bs=64k count=%d 2>/dev/null | nc %s 9000", size>>16, to))
	if n := <-got; n != size {
		g.t.Errorf("TCP from the guest to %s: %d bytes of %d", to, n, size)
	}
}
