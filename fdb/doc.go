// Package fdb implements the MAC table of a virtual switching instance: it maps each MAC to a
// [frame.Dest]. Entries are learned, or set by hand or by a control plane. Learned entries are limited,
// aged and flushed.
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
// [Gens] are shared by all tables of a switch: a generation for each port and each peer. An entry is
// alive only while its generation is the current one, so a flush is one increment.
//
// # Concurrency
//
// All methods are safe for concurrent use. [Table.Lookup], [Table.Get] and [Table.All] take no lock and
// write nothing.
//
// [Table.Learn] never waits. For a MAC that is known at its place it writes at most once a tick. A new
// MAC or a move needs the lock; if that is taken, Learn gives up and returns [Busy].
//
// [Table.Set], [Table.Delete], [Table.Len], [Table.Stats], [Table.Grow] and the setters wait for the
// lock. [Table.Sweep] takes it for single entries, and to copy the table when it has to grow.
//
// # Housekeeping
//
// The owner must call [Table.Sweep] at every tick, for a slice of every table, so that a round takes a
// fraction of the ageing time. It must also check [Table.MustSweep], which says when a table cannot wait
// for its turn. Ageing, growth beyond a few thousand entries, and the wrapping of generations depend on
// it.
//
// # Entries
//
// Learned entries move with their MAC, age, count towards limits, and cause events. An entry that moves
// too often can be frozen ([Config].Freeze). Static entries never move. Control entries move to a Dest
// without a peer, which is a local port, when a frame from the MAC comes in there, unless they are
// [Sticky]; a frame from a tunnel never moves them. [Filter] entries drop frames to and from a MAC.
//
// # Memory
//
// A slot takes 24 bytes, or 32 in a table that evicts; that is 32 or 43 bytes for each entry when three
// quarters of the slots are used. Tables with up to 3072 entries use half as many, which makes look-ups
// faster. Once any MAC has moved, a slot takes 16 bytes more. The package has no clock, goroutines or I/O;
// callers pass the ticks.
package fdb
