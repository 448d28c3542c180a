package flannel_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		t.Parallel()
		m := flannel.NewMemory("")
		m.TTL = 2 * time.Second
		t.Cleanup(func() { m.Close() })
		return storetest.Fixture{KV: m.KV, SetNetwork: m.SetNetwork, Put: m.Put, Remove: m.Remove, Compact: m.Compact, Away: func(is bool) {
			m.Fail(map[bool]error{true: errors.New("away")}[is])
		}}
	})
}

func TestMemoryClosed(t *testing.T) {
	m := flannel.NewMemory(`{"Network": "10.3.0.0/16"}`)
	kv := m.KV()
	m.Put("10.3.1.0-24", nil, time.Hour)
	m.Close()
	m.Close()
	m.Put("10.3.2.0-24", nil, time.Hour)
	m.Remove("10.3.1.0-24")
	if _, err := kv.List(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// Who is slow to watch begins anew, instead of keeping what has happened for ever.
func TestMemoryHistory(t *testing.T) {
	m := flannel.NewMemory("")
	defer m.Close()
	snapshots := 0
	err := m.KV().Watch(t.Context(), func(c flannel.Change) {
		if c.Snapshot {
			snapshots++
		}
		for range 3 << 16 {
			m.Put("10.3.1.0-24", nil, 0)
		}
	})
	if err == nil || snapshots != 1 {
		t.Errorf("%v after %d snapshots", err, snapshots)
	}
}
