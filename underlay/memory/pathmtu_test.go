package memory

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A router on the way: what is too long for it is lost, and the sender told later.
func TestPathMTU(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		fits int
	}{{"192.0.2.1:1", "192.0.2.2:1", 972}, {"[2001:db8::1]:1", "[2001:db8::2]:1", 952}} {
		synctest.Test(t, func(t *testing.T) {
			n := NewNetwork(nil)
			a, b := member(t, n, tc.a, nil), member(t, n, tc.b, nil)
			n.SetLink(a.LocalAddr().Addr(), b.LocalAddr().Addr(), Link{PathMTU: 1000, Delay: 30 * time.Millisecond})
			eb := endpoint(t, b.LocalAddr())
			var got reports
			a.PathMTU(func(to frame.Endpoint, mtu int, quoted []byte) {
				got.PathMTU(to, mtu, quoted)
				a.Stats() // no lock is held
				n.Stats()
			})
			long := strings.Repeat("head", 20) + strings.Repeat("x", tc.fits+1-80)
			plain := to(long, 1, eb)
			plain.DF = false
			split := frame.Datagram{Parts: [][]byte{[]byte(long)[:8], []byte(long)[8:]}, To: []frame.Endpoint{eb}, DF: true}
			short := to("x", 1, eb)
			ds := []frame.Datagram{to(long, 1, eb), plain, split, to(long[1:], 1, eb), short}
			if send(t, a, ds...); ds[0].Lost != 0 || ds[2].Lost != 0 {
				t.Error("the sender was told at once")
			}
			synctest.Wait()
			if x := got.Take(); x != nil {
				t.Errorf("told before an error can be there: %v", x)
			}
			if st := n.Stats(); st.TooLong != 2 || st.InFlight != 3 {
				t.Errorf("%+v", st)
			}
			balance(t, n, 5)
			time.Sleep(30 * time.Millisecond)
			synctest.Wait()
			want := report{To: eb, MTU: 1000, Quoted: long[:128]}
			if x := got.Take(); len(x) != 2 || x[0] != want || x[1] != want {
				t.Errorf("%v", x)
			}
			if s := payloads(receive(t, b, 3)); s[0] != long || s[1] != long[1:] || s[2] != "x" {
				t.Errorf("%d, %d and %d bytes", len(s[0]), len(s[1]), len(s[2]))
			}
			balance(t, n, 5)
			if st := a.Stats(); st.Errors.TooBig != 2 || st.Lost() != 0 {
				t.Errorf("%+v", st)
			}
			// Nobody is told after Close.
			send(t, a, to(long, 1, eb))
			a.Close()
			time.Sleep(time.Second)
			synctest.Wait()
			if x := got.Take(); x != nil {
				t.Errorf("told after Close: %v", x)
			}
			balance(t, n, 6)
		})
	}
}
