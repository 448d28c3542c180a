package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// All hosts have a part in the pairs, of which there is one each, and the same in every run.
func TestPairs(t *testing.T) {
	ps := pairs(talkPairs)
	var hosts [2]map[uint16]bool
	for end := range hosts {
		hosts[end] = map[uint16]bool{}
		for _, p := range ps {
			hosts[end][p[end]] = true
		}
		if len(hosts[end]) != talkHosts {
			t.Errorf("%d hosts behind end %d", len(hosts[end]), end)
		}
	}
	seen := map[pair]bool{}
	for _, p := range ps {
		seen[p] = true
	}
	if len(seen) != talkPairs || !slices.Equal(ps, pairs(talkPairs)) || !slices.Equal(ps[:1], pairs(1)) {
		t.Errorf("%d pairs, %v first and %v alone", len(seen), ps[0], pairs(1))
	}
}

// A talker's frames are as gopacket makes them, of its pairs and no others: in runs one pair after the other, and else
// drawn by chance, of which many are not missed for long.
func TestTalker(t *testing.T) {
	for _, k := range []talker{{0, talkPairs, 16}, {1, talkPairs, 1}, {0, talkPairs, 0}, {1, 1, 0}, {0, 3, 2}} {
		b := make([]byte, talkHead+talkSize)
		k.fixed(b)
		head, want, seen := k.head(), pairs(k.pairs), map[pair]int{}
		for n := range uint64(4 * talkPairs) {
			binary.BigEndian.PutUint64(b[talkHead:], n)
			head(b, n)
			var p pair
			p[k.end], p[1-k.end] = binary.BigEndian.Uint16(b[10:]), binary.BigEndian.Uint16(b[4:])
			if seen[p]++; k.run > 0 && p != want[n/uint64(k.run)%talkPairs%uint64(k.pairs)] {
				t.Fatalf("%+v: frame %d is of %v", k, n, p)
			}
			if n%997 != 0 {
				continue
			}
			mac := func(end int) []byte { return []byte{2, 0, 0, byte(1 + end), byte(p[end] >> 8), byte(p[end])} }
			ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP}
			ip.SrcIP = []byte{10, byte(1 + k.end), byte(p[k.end] >> 8), byte(p[k.end])}
			ip.DstIP = []byte{10, byte(2 - k.end), byte(p[1-k.end] >> 8), byte(p[1-k.end])}
			udp := &layers.UDP{SrcPort: talkPort, DstPort: talkPort}
			udp.SetNetworkLayerForChecksum(ip)
			made := packets.Of(&layers.Ethernet{SrcMAC: mac(k.end), DstMAC: mac(1 - k.end), EthernetType: layers.EthernetTypeIPv4},
				ip, udp, gopacket.Payload(b[talkHead:]))
			made[40], made[41] = 0, 0 // no checksum
			if !bytes.Equal(b, made) {
				t.Fatalf("%+v:\n%x, want\n%x", k, b, made)
			}
		}
		for p := range seen {
			if !slices.Contains(want, p) {
				t.Fatalf("%+v: a frame of %v", k, p)
			}
		}
		if least := map[bool]int{true: 4 * talkPairs / max(k.run, 1), false: talkPairs * 9 / 10}[k.run > 0]; len(seen) < min(least, k.pairs) {
			t.Errorf("%+v: frames of %d pairs", k, len(seen))
		}
	}
}

func TestReadTalker(t *testing.T) {
	if k, err := readTalker("1", "5000", "16"); err != nil || k != (talker{1, 5000, 16}) {
		t.Errorf("%+v, %v", k, err)
	}
	for _, bad := range [][3]string{{"2", "1", "0"}, {"-1", "1", "0"}, {"0", "0", "0"}, {"0", "5001", "0"}, {"0", "1", "-1"}, {"x", "1", "0"}, {"0", "", "0"}, {"0", "1", "y"}} {
		if k, err := readTalker(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q: %+v", bad, k)
		}
	}
}
