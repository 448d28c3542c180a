// Growth measures how the cost of a frame grows with the size of the fabric, in
// memory and without root:
//
//	go run ./bench/growth
//	go run ./bench/growth -sweep macs,peers -passes 5 -json out.json -svg out.svg
//
// There are four sweeps: MACs known in one VSI, VNIs, peers in a flood list, and ports.
// Each drives the worker of a switch with frames of 64 bytes, as package bench/rig
// does: what is measured is everything between a Read and a Write or Send, and the
// making of the frame's addresses, which costs the same at every size.
//
// In a pass every size of a sweep is measured once, one direction up and the next
// down, on a switch made for it and closed after it. What is printed is the median
// over the passes with the smallest and the largest value, and its ratio to that of
// the smallest size. Allocations are those of the whole process in short runs of their
// own, the one with the fewest: the runtime and the housekeeping have some now and then.
//
// Look-ups (MACs, VNIs, a frame to one port) are to stay flat but for the processor's
// caches, replication is to be linear in the copies at most. The last lines of each
// sweep say what became of that; the program ends with status 1 when something grows
// faster, by the smallest values, or when a frame costs an allocation.
package main
