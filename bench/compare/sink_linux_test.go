package main

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// silence ends the count of a sink, where its sender does not.
const silence = 500 * time.Millisecond

// counting starts a sink on loopback. What it counted comes from the function.
func counting(t *testing.T, size int) (at netip.AddrPort, result func() received) {
	t.Helper()
	f, at, err := listen("127.0.0.1:0")
	must(t, err)
	type end struct {
		r   received
		err error
	}
	done := make(chan end, 1)
	go func() {
		r, err := sink(f, 0, size, silence)
		f.Close()
		done <- end{r, err}
	}()
	return at, func() received {
		t.Helper()
		select {
		case e := <-done:
			if e.err != nil {
				t.Fatal(e.err)
			}
			return e.r
		case <-time.After(30 * time.Second):
			t.Fatal("the sink does not end")
		}
		return received{}
	}
}

// Every packet of a slow sender arrives, at about the rate.
func TestBlastPaced(t *testing.T) {
	const size, pps = 100, 5000
	at, result := counting(t, size)
	d := 200 * time.Millisecond
	s := check.Must(blast(at.String(), size, d, pps))(t)
	r := result()
	if r.Received != s.Sent || r.Lost != 0 || r.Reordered != 0 || r.Bytes != s.Sent*size || s.Errors != 0 {
		t.Errorf("sent %+v, received %+v", s, r)
	}
	// A busy machine holds it up: it may be slower, but never faster.
	if most := uint64(pps*d.Seconds()) + burst; s.Sent > most || s.Sent < most/20 {
		t.Errorf("%d packets, want %d at most", s.Sent, most)
	}
	if s.Seconds < d.Seconds() || r.Seconds <= 0 || r.Seconds > s.Seconds+1 {
		t.Errorf("%v s of sending, %v s of receiving", s.Seconds, r.Seconds)
	}
}

// At full speed more goes out, and what does not arrive is counted.
func TestBlastFull(t *testing.T) {
	const size = 64
	at, result := counting(t, size)
	s := check.Must(blast(at.String(), size, 100*time.Millisecond, 0))(t)
	if r := result(); r.Received == 0 || r.Received+r.Lost != s.Sent || r.Reordered != 0 {
		t.Errorf("sent %+v, received %+v", s, r)
	}
	if s.Sent < 2*burst {
		t.Errorf("%d packets in 100 ms", s.Sent)
	}
}

// Loss and reordering, the end included, by packets made for it.
func TestSinkCrafted(t *testing.T) {
	at, result := counting(t, 32)
	c := check.Must(net.Dial("udp", at.String()))(t)
	defer c.Close()
	packets := [][]byte{[]byte("foreign")}
	for _, n := range []uint64{0, 1, 5, 4, 3, 6, 8} { // without 2, 7 and 9
		packets = append(packets, numbered(n, 32))
	}
	over := make([]byte, lastSize)
	putLast(over, 10)
	for _, b := range append(packets, over) {
		check.Must(c.Write(b))(t)
	}
	r := result()
	r.Seconds = 0
	if want := (received{Received: 7, Bytes: 7 * 32, Lost: 3, Reordered: 2}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// A sender that falls silent ends the count, with what its numbers tell.
func TestSinkSilence(t *testing.T) {
	at, result := counting(t, 32)
	c := check.Must(net.Dial("udp", at.String()))(t)
	defer c.Close()
	begin := time.Now()
	for _, n := range []uint64{0, 2} {
		check.Must(c.Write(numbered(n, 32)))(t)
	}
	r := result()
	if r.Received != 2 || r.Lost != 1 {
		t.Errorf("%+v", r)
	}
	if took := time.Since(begin); took < silence {
		t.Errorf("it ended after %v", took)
	}
}

// Nobody listens: the sender hears of it and goes on.
func TestBlastRefused(t *testing.T) {
	f, at, err := listen("127.0.0.1:0")
	must(t, err)
	f.Close()
	s, err := blast(at.String(), 64, 50*time.Millisecond, 2000)
	if err != nil || s.Sent == 0 || s.Errors == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// An error that stays is one of the sender.
func TestBlastTooLong(t *testing.T) {
	f, at, err := listen("127.0.0.1:0")
	must(t, err)
	defer f.Close()
	if _, err := blast(at.String(), 70000, time.Second, 0); err == nil || !strings.Contains(err.Error(), "message too long") {
		t.Error(err)
	}
	if _, err := blast("nowhere", 64, time.Second, 0); err == nil {
		t.Error("sent to nowhere")
	}
}

// A sink's buffer is what it asked for when it may, as root.
func TestListen(t *testing.T) {
	f, at, err := listen("127.0.0.1:0")
	must(t, err)
	defer f.Close()
	if at.Port() == 0 {
		t.Error("no port")
	}
	if n := receiveBuffer(t, f); os.Geteuid() == 0 && n < sinkBuffer {
		t.Errorf("buffer of %d bytes", n)
	}
	if _, _, err := listen(at.String()); err == nil {
		t.Error("the port is there twice")
	}
}

func receiveBuffer(t *testing.T, f *os.File) int {
	t.Helper()
	n := check.Must(unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUF))(t)
	return n
}
