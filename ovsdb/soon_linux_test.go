package ovsdb

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
)

// A controller hears of a host with its address soon after its first frame: 100 ms are wanted without load, and the figure is logged.
func TestLocalSoon(t *testing.T) { servers(t, testLocalSoon) }

func testLocalSoon(t *testing.T, l *lab) {
	l.bind()
	c := client(t, l.db.Sock)
	heard := make(chan time.Time, 1)
	check.OK(t, c.Monitor(t.Context(), database, map[string][]string{"Ucast_Macs_Local": {"ipaddr"}}, func(all rpc.Tables) {
		for _, r := range all["Ucast_Macs_Local"] {
			if r["ipaddr"] == "10.0.0.1" {
				select {
				case heard <- time.Now():
				default:
				}
			}
		}
	}))
	began := time.Now()
	l.guest.Ping("10.0.0.2", 1)
	select {
	case at := <-heard:
		t.Logf("heard %v after ping was started", at.Sub(began).Round(time.Millisecond))
	case <-time.After(time.Minute):
		t.Error("not heard in a minute")
	}
}
