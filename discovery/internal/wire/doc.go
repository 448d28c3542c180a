// Package wire has the messages between VTEPs as bytes. The format is our own, and changes with the version in package seal.
//
//	 0      1         5
//	+------+---------+------------------------+
//	| type | network | of a type              |
//	+------+---------+------------------------+
//
//	update    ID, sequence 8, checksum 4, hold in ms 4, groups up to the end
//	group     VNI 3, kind 1, MACs 1, each: MAC 6, moves 2; without MACs it is the segment itself
//	ack       ID, sequence 8, checksum 4
//	summary   epoch 8, ID of the begin, ID of the end, entries 1, each like an ack
//	want      epoch 8, IDs 1, each an ID
//	hello     life 8, heard 8, sequence 8
//	register  flags 1 (1 = leaves), name
//	probe     life 8, version 8
//	clients   life 8, since 8, version 8, flags 1 (1 = more follow, 2 = young), clients 1, each: address, flags 1 (1 = gone), name
//	ID        address, part 1
//	address   its length 1, 4 or 16, and it
//	name      its length 1, UTF-8
//
// A group is as RFC 6165 has MACs in TLV 147 of IS-IS: once what they have in common, and the MACs. Each message fits a datagram of
// [MaxSize] bytes and can be read without any other. What [Parse] takes, [Append] gives again byte for byte.
package wire
