package flannel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
)

// A slowShape takes rows and routes only after some tries.
type slowShape struct {
	*fakeShape
	rows, routes int // tries that fail
}

func (s *slowShape) Open(n *Network, own *Own, generation int) (MapperConfig, error) {
	return MapperConfig{Host: true}, nil
}

func (s *slowShape) Program(owner string, u control.Update) error {
	if len(u.Add) > 0 && s.rows > 0 {
		s.rows--
		return errors.New("no rows now")
	}
	return s.fakeShape.Program(owner, u)
}

func (s *slowShape) Routes(u RouteUpdate) error {
	if len(u.Add) > 0 && s.routes > 0 {
		s.routes--
		return errors.New("no routes now")
	}
	return s.fakeShape.Routes(u)
}

// What the shape has not taken is passed on again, without another change of leases, and said once. Until then the plane is not ready.
func TestPassedAgain(t *testing.T) {
	bubble(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`, func(t *testing.T, m *Memory) {
		a := vxlan("192.0.2.9", 9)
		m.Put("10.3.9.0-24", a.Value(), 0)
		shape := &slowShape{rows: 3, routes: 8}
		s := run(t, m, "192.0.2.1", func(c *PlaneConfig) { shape.fakeShape = newFakeShape(); c.Shape = shape })
		synctest.Wait()
		select {
		case <-s.Ready():
			t.Errorf("ready with the rows %v", shape.Rows("flannel"))
		default:
		}
		<-s.Ready()
		if rows := shape.Rows("flannel"); len(rows) != 1 || len(shape.fakeShape.routes) != 1 {
			t.Errorf("ready with rows %v, routes %v", rows, shape.fakeShape.routes)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rows := shape.Rows("flannel"); len(rows) != 1 || len(shape.fakeShape.routes) != 1 {
			t.Errorf("rows %v, routes %v", rows, shape.fakeShape.routes)
		}
		if n := s.log.Count("no routes now"); n != 2 { // with that of the rows, and alone
			t.Errorf("said %d times: %s", n, s.log)
		}
		s.stop()
	})
}

// A quitter is a store whose watches end without an error.
type quitter struct{ *Registry }

func (q quitter) Watch(ctx context.Context, f func(Change)) error {
	list, err := q.KV.List(ctx)
	f(Change{Snapshot: true, Set: list})
	return err
}

// A watch that ends without an error is begun again, as others are, and one that always does after longer and longer pauses.
func TestWatchWithoutError(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		s := run(t, m, "192.0.2.1", func(c *PlaneConfig) { c.Store = quitter{c.Store.(*Registry)} })
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := s.Status(); st.Snapshots < 3 || st.Snapshots > 20 || st.Phase != Following {
			t.Errorf("%+v", st)
		}
		s.stop()
	})
}

// A node whose own lease is one that others like it refuse says so.
func TestPublicIPInside(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		s := run(t, m, "10.3.9.9", nil)
		synctest.Wait()
		if n := s.log.Count("the public address is in the network"); n != 1 {
			t.Errorf("said %d times", n)
		}
		s.stop()
	})
}
