// Package l3 is what the switch knows of IP. Its parts are stages: they fill the slots
// of a switch (package vswitch, type Stage), and stand on the frame alone.
//
// [TooBig] tells the sender of a packet that is too long for its tunnel how long a
// packet may be. A bridge has no address to say so from, and a sender that hears
// nothing goes on sending what never arrives; so the answer is forged from the host
// the packet was for:
//
//	host A ---- 1500 ----> switch ---- tunnel, 1450 ----> host B
//	       <-- from B: fragmentation needed, MTU 1450
//
// Linux does the same for its tunnels that are ports of a bridge.
//
// # What may be called from where
//
// Process runs inside the workers of a switch, any number of them at once. It takes
// no lock, allocates nothing, and keeps no frame: the answer is written over the frame
// it is about. Stats may be called from anywhere.
package l3
