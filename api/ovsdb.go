package api

import "time"

// An OVSDB is what the section ovsdb of the configuration does.
type OVSDB struct {
	State string     `json:"state"`           // connecting, waiting, connected, failed; stopped while it begins anew
	Since time.Time  `json:"since"`           // of the state
	Error string     `json:"error,omitempty"` // of the last connection, why it waits, or with which a failed one has ended
	Again *time.Time `json:"again,omitempty"` // when a failed one is tried again

	Target string `json:"target"`
	Switch string `json:"switch"`          // name of the Physical_Switch
	Stale  bool   `json:"stale,omitempty"` // segments and rows are of an earlier connection

	Segments int               `json:"segments"`           // Logical_Switches that the node has
	Rows     int               `json:"rows"`               // MACs, neighbours and flood lists of the controller
	Hosts    int               `json:"hosts"`              // MACs of the node in the database, with each of their addresses
	LeftOut  map[string]int    `json:"leftOut"`            // rows of the database without effect, by reason
	Refused  map[string]string `json:"refused"`            // Logical_Switches that the node refuses, and why
	RowError string            `json:"rowError,omitempty"` // about rows that the node refused last

	Transactions uint64 `json:"transactions"`         // of the node
	Failed       uint64 `json:"failed"`               // of these
	WriteError   string `json:"writeError,omitempty"` // of the last one
}

// An OVSDBRow is a row of the database that has no effect, or not all of it.
type OVSDBRow struct {
	Table  string `json:"table"`
	UUID   string `json:"uuid"`
	Reason string `json:"reason"`
}
