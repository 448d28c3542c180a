package ovsdb

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A server that says null in place of its tables has not said that it has no rows: those that it said before stay.
func TestNullKeepsRows(t *testing.T) {
	n := new(fakeNode)
	s := bound(t, n)
	s.apply()
	l := check.Must(net.Listen("unix", filepath.Join(t.TempDir(), "s")))(t)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for d := json.NewDecoder(conn); ; {
			var m struct{ ID json.RawMessage }
			if d.Decode(&m) != nil {
				return
			}
			fmt.Fprintf(conn, `{"id":%s,"result":null,"error":null}`, m.ID)
		}
	}()
	s.cfg.Target = "unix:" + l.Addr().String()
	if err := s.serve(t.Context()); err == nil || !strings.Contains(err.Error(), "a reply to monitor") {
		t.Error(err)
	}
	s.ours, s.dirty = true, true
	s.apply()
	if st := s.Status(); st.Segments != 2 || st.Rows != 4 || len(n.rows) != 4 {
		t.Errorf("%+v", st)
	}
}
