package bfd

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An frr is the bfdd of FRR in a host, with the zebra that it wants.
type frr struct {
	h      *netns.Host
	folder string
}

func startFRR(t testing.TB, h *netns.Host, conf string) *frr {
	t.Helper()
	const daemons = "/usr/lib/frr/"
	if _, err := os.Stat(daemons + "bfdd"); err != nil {
		netns.Require(t, err)
	}
	folder, err := os.MkdirTemp("", "frr") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	who, err := user.Lookup("frr")
	netns.Require(t, err)
	uid, _ := strconv.Atoi(who.Uid)
	must(t, os.Chown(folder, uid, -1))
	f := &frr{h, folder}
	file := func(name string) string { return filepath.Join(folder, name) }
	must(t, os.WriteFile(file("bfdd.conf"), []byte(conf), 0o644))
	must(t, os.WriteFile(file("zebra.conf"), nil, 0o644))
	for _, d := range []string{"zebra", "bfdd"} {
		args := []string{"--vty_socket", folder, "-z", file("zserv.api"), "-i", file(d + ".pid"), "-f", file(d + ".conf"), "--log", "stdout", "-P", "0"}
		if d == "bfdd" {
			args = append(args, "--bfdctl", file("bfdd.sock"))
		}
		h.Start(daemons+d, args...)
		h.Until(d+" runs", func() bool { _, err := os.Stat(file(d + ".vty")); return err == nil })
	}
	return f
}

func (f *frr) do(commands ...string) string {
	args := []string{"--vty_socket", f.folder}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	return f.h.Run("vtysh", args...)
}

// FRR and ours: up, timers as agreed, and its operator's commands: new timers, and a session that is shut down, which is not a
// failure.
func TestFRR(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,fd00::1/64", b, "10.0.0.2/24,fd00::2/64")
	a.Ready()
	b.Ready()
	const settings = "  detect-multiplier 5\n  receive-interval 200\n  transmit-interval 100\n"
	f := startFRR(t, b, "bfd\n peer 10.0.0.1 interface eth0\n"+settings+" !\n peer fd00::1 local-address fd00::2 interface eth0\n"+settings+" !\n")
	o := newOurs(t, a, UDPConfig{})
	for _, c := range []struct{ local, remote, name string }{
		{"10.0.0.1", "10.0.0.2", "peer 10.0.0.1 interface eth0"},
		{"fd00::1", "fd00::2", "peer fd00::1 local-address fd00::2 interface eth0"},
	} {
		p := o.add(c.local, c.remote, false, SessionConfig{Interval: 150 * time.Millisecond})
		o.want(Alive, NoDiag)
		b.Until("we have agreed", func() bool {
			s := o.session(p)
			return s.Interval == 200*time.Millisecond && s.Detection == 5*150*time.Millisecond
		})
		shown := func() string { return f.do("show bfd " + c.name + " json") }
		b.Until("FRR is up", func() bool { return strings.Contains(shown(), `"status":"up"`) })

		f.do("configure terminal", "bfd", c.name, "receive-interval 400", "transmit-interval 500")
		b.Until("other timers", func() bool {
			s := o.session(p)
			return s.Interval == 400*time.Millisecond && s.Detection == 5*500*time.Millisecond
		})
		must(t, o.s.Change(p, &SessionConfig{Interval: 700 * time.Millisecond, Notify: func(c Change) { o.c <- c }}))
		b.Until("FRR has heard of ours", func() bool {
			s := o.session(p)
			return s.Interval == 700*time.Millisecond && s.Detection == 5*700*time.Millisecond && strings.Contains(shown(), `"remote-receive-interval":700`)
		})

		f.do("configure terminal", "bfd", c.name, "shutdown")
		o.want(Unknown, NeighborDown) // FRR 8.4.4 gives no reason in its packets
		check.Equal(t, "state of FRR", o.session(p).RemoteState, AdminDown)
		f.do("configure terminal", "bfd", c.name, "no shutdown")
		o.want(Alive, NoDiag)

		// Ours is shut down: FRR shows that it knows.
		must(t, o.s.Change(p, &SessionConfig{AdminDown: true, Notify: func(c Change) { o.c <- c }}))
		o.want(Unknown, DiagAdminDown)
		b.Until("FRR is told", func() bool { return strings.Contains(shown(), `"status":"down"`) })
		must(t, o.s.Remove(p))
	}
	if st := o.s.Stats(); st.Discarded.Total() != st.Discarded[UnknownSession]+st.Discarded[UnknownPeer]+st.Discarded[HeldDown] {
		t.Errorf("%+v", st)
	}
}
