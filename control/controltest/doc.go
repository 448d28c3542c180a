// Package controltest tests what stands between control planes and a switch.
//
// [Run] is what any [control.Programmer] has to do, whatever is behind it: the tables of this
// module, those of a kernel, a connection to another machine. [Model] is a Programmer in plain
// maps, to test a control plane with, and to compare a real one to.
package controltest
