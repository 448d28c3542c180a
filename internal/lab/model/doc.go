// Package model tests whole fabrics against a golden model: switches with VTEPs,
// joined by an in-memory underlay, beside the same fabric in plain maps and slices.
//
//	seed --> topology --> operations, one at a time until all is quiet
//	                          |                     |
//	                       the fabric           the model
//	                          |                     |
//	                          +---- must agree -----+
//	      frames at every host, datagrams on the wire, every counter by its
//	      reason, every MAC table, every event
//
// The model says what must happen, in the order a reader of the rules would: it has
// no workers, no batches, no generations, no lists of peers by number. A second test
// lets everything overlap, and checks what holds then too: nothing twice, nothing in
// another network, nothing lost without a name.
//
// A seed that fails is run again with
//
//	go test ./internal/lab/model -run TestModel -seed 17
//
// which prints the operations that are enough to see the disagreement.
package model
