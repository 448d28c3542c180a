package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	talkHosts = 500  // behind each end
	talkPairs = 5000 // of them, each with a host of either end: two flows, one each way
	talkHead  = 14 + 20 + 8
	talkSize  = 64
	talkPort  = 7008
)

// A pair is who talks: the number of a host behind each end.
type pair [2]uint16

// pairs returns the first n of all pairs, which are drawn by chance, but the same ones in every run.
func pairs(n int) []pair {
	ps := make([]pair, n)
	for i, at := range rand.New(rand.NewPCG(1, 2)).Perm(talkHosts * talkHosts)[:n] {
		ps[i] = pair{uint16(at / talkHosts), uint16(at % talkHosts)}
	}
	return ps
}

// A talker makes the frames of the hosts behind an end to those behind the other: UDP over IPv4 without a checksum, since the
// payload changes. One pair costs it what many do.
type talker struct {
	end   int // 0 or 1
	pairs int
	run   int // packets of a pair in a row, and the pairs in order; 0: each packet is of a pair drawn by chance
}

// readTalker reads the arguments END, PAIRS and RUN.
func readTalker(end, pairs, run string) (k talker, err error) {
	var errs [3]error
	k.end, errs[0] = strconv.Atoi(end)
	k.pairs, errs[1] = strconv.Atoi(pairs)
	k.run, errs[2] = strconv.Atoi(run)
	if err = errors.Join(errs[:]...); err == nil && (k.end>>1 != 0 || k.pairs < 1 || k.pairs > talkPairs || k.run < 0) {
		err = fmt.Errorf("talk: END %s, PAIRS %s, RUN %s: allowed are 0 or 1, 1 to %d, 0 or more", end, pairs, run, talkPairs)
	}
	return k, err
}

// fixed fills in what is the same in all frames.
func (k talker) fixed(b []byte) {
	b[0], b[3], b[6], b[9] = 2, byte(2-k.end), 2, byte(1+k.end)
	b[12] = 8 // IPv4
	ip := b[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], 20+8+talkSize)
	ip[12], ip[13], ip[16], ip[17] = 10, byte(1+k.end), 10, byte(2-k.end)
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp, talkPort)
	binary.BigEndian.PutUint16(udp[2:], talkPort)
	binary.BigEndian.PutUint16(udp[4:], 8+talkSize)
}

// head returns what fills in the rest of the headers of the n-th frame.
func (k talker) head() func(b []byte, n uint64) {
	list, some := make([]pair, talkPairs), pairs(k.pairs)
	for i := range list {
		list[i] = some[i%len(some)]
	}
	draw := rand.NewPCG(3, uint64(k.end))
	return func(b []byte, n uint64) {
		i := (draw.Uint64() >> 32) * talkPairs >> 32
		if k.run > 0 {
			i = n / uint64(k.run) % talkPairs
		}
		src, dst := list[i][k.end], list[i][1-k.end]
		binary.BigEndian.PutUint16(b[4:], dst)
		binary.BigEndian.PutUint16(b[10:], src)
		ip := b[14:34]
		binary.BigEndian.PutUint16(ip[14:], src)
		binary.BigEndian.PutUint16(ip[18:], dst)
		ip[10], ip[11] = 0, 0
		sum := uint32(0)
		for j := 0; j < len(ip); j += 2 {
			sum += uint32(binary.BigEndian.Uint16(ip[j:]))
		}
		sum = sum&0xffff + sum>>16
		binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	}
}

// insideTalk is talk with its arguments as text.
func insideTalk(dev, end, pairs, run, duration, pps string) error {
	k, err := readTalker(end, pairs, run)
	d, e := time.ParseDuration(duration)
	rate, e2 := strconv.ParseUint(pps, 10, 32)
	if err = errors.Join(err, e, e2); err != nil {
		return err
	}
	s, err := talk(dev, k, d, float64(rate))
	if err != nil {
		return err
	}
	return say(s)
}
