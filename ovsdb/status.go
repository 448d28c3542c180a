package ovsdb

import (
	"maps"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// States of a Switch.
const (
	Connecting = "connecting" // there is no connection; what the database said last holds
	Waiting    = "waiting"    // another client has the name, as the server's lock says; nothing changes
	Connected  = "connected"
	Stopped    = "stopped" // Run has ended
)

// Left is a row of the database that has no effect, or not all of it: its Table, its UUID as ID, and the Reason, a word that docs/ovsdb.md
// explains.
type Left = table.Left

// Status is what a Switch does.
type Status struct {
	State string
	Since time.Time
	Err   error // of the last connection, while there is none, or why the Switch waits
	Stale bool  // segments and rows, perhaps none, are of an earlier connection

	Segments int // Logical_Switches that the node has
	Rows     int // of package control
	Hosts    int // MACs on our ports, with each of their addresses

	Left    []Left           // rows of the database without effect, the first 64
	LeftOut map[string]int   // how many there are, by reason
	Refused map[string]error // Logical_Switches that the node refuses, by name; tried again every 2 s
	RowErr  error            // rows that the node refused last; tried again every 2 s

	Transactions uint64 // that we sent
	Failed       uint64 // of these
	WriteErr     error  // of the last one
}

// Status returns what the Switch does.
func (s *Switch) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Stale = st.State != Connected && s.told
	st.LeftOut, st.Refused = maps.Clone(st.LeftOut), maps.Clone(st.Refused)
	return st
}
