// Package fdb is the MAC table of one virtual switch instance: which MAC is at
// which [frame.Dest], and how that is learned, set by hand or by a control plane,
// limited, aged and flushed.
//
//	Learn(source MAC, Dest)              Lookup(destination MAC) -> Dest
//	   |  known here: note the tick         |  wait-free
//	   |  new, moved: TryLock               |
//	   v                                    v
//	+------------- one array, published by one atomic pointer --------------+
//	| slots  key: MAC, stamp | val: Dest, generation, pinned, stamp | ...    |
//	| meta   seen, moves, flags                                              |
//	+------------------------------------------------------------------------+
//	   ^                                    ^
//	   |  Set, Delete, limits: lock         |  Sweep: a slice at a time
//	control planes                       housekeeping
//
//	Gens, shared by all tables of a switch: one counter per port and per peer.
//	An entry lives only while its generation is theirs, so a flush is one increment.
//
// # Who waits for whom
//
// [Table.Lookup], [Table.Get] and [Table.All] take no lock and write nothing, so
// any number of workers may call them while everything else goes on.
//
// [Table.Learn] never waits. A MAC known where it is costs one write a tick; only
// a new or moved one needs the lock, and if it is taken Learn gives up with
// [Busy]. Learning is best effort, forwarding never waits.
//
// [Table.Set], [Table.Delete], [Table.Len], [Table.Stats], [Table.Grow] and the
// setters wait for the lock. [Table.Sweep] takes it for single entries, and for
// as long as it takes to copy the table when that has to grow.
//
// # What the owner owes
//
// Somebody calls [Table.Sweep] at every tick, a slice of every table, so that a
// round takes a fraction of the ageing time; and asks [Table.MustSweep], which
// says when a table cannot wait for its turn. Ageing, growth beyond a few thousand
// entries, and the safety of generations, which wrap, stand on it.
//
// # Entries
//
// Learned entries move with their MAC, age, are limited, and are told of in
// events; where it is set, one that moves too often stays where it was ([Config].Freeze).
// Static entries never move. Control entries give way to a frame that
// comes in at a Dest without a peer, that is, from a host here, unless they are
// [Sticky]; a frame from a tunnel never moves them. [Filter] entries say that
// frames to and from a MAC are dropped.
//
// Memory is 24 bytes a slot, 32 in a table that evicts: 32 and 43 bytes an entry
// when three quarters are used; once a MAC has moved, 16 more a slot. Ticks come from the caller: the package has no
// clock, no goroutine and no I/O.
package fdb
