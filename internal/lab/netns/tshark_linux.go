package netns

import (
	"bytes"
	"context"
	"encoding/binary"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Pcap returns packets as the contents of a capture file, with times in nanoseconds.
func Pcap(ps []Packet) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d) // nanoseconds
	b = le.AppendUint16(b, 2)             // version 2.4
	b = le.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 1<<18) // longest packet
	b = le.AppendUint32(b, 1)     // Ethernet
	for _, p := range ps {
		b = le.AppendUint32(b, uint32(p.Time.Unix()))
		b = le.AppendUint32(b, uint32(p.Time.Nanosecond()))
		b = le.AppendUint32(b, uint32(len(p.Data)))
		b = le.AppendUint32(b, uint32(len(p.Data)))
		b = append(b, p.Data...)
	}
	return b
}

// Tshark has tshark decode packets and returns what it prints: lines of a summary, or
// what the args ask for. It names no hosts and checks no checksums unless told to.
func Tshark(t testing.TB, ps []Packet, args ...string) string {
	t.Helper()
	Tool(t, "tshark")
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	c := exec.CommandContext(ctx, "tshark", append([]string{"-n", "-r", "-"}, args...)...)
	c.Stdin = bytes.NewReader(Pcap(ps))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("lab: tshark %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// Fields has tshark decode packets and returns, for each that the display filter
// matches, "" for all, the values of the fields. A field that is in a packet several
// times, as an outer and an inner one, has its values with commas between them, the
// outer first; one that is not there is "". A TCP checksum of 0xffff is good where 0 is, as
// Linux writes it: it is the same number.
func Fields(t testing.TB, ps []Packet, filter string, fields ...string) [][]string {
	t.Helper()
	args := []string{"-T", "fields", "-E", "separator=/t", "-E", "occurrence=a",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"}
	if filter != "" {
		args = append(args, "-Y", filter)
	}
	ask, status := fields, slices.Index(fields, "tcp.checksum.status")
	if status >= 0 {
		ask = append(slices.Clip(fields), "tcp.checksum.ffff") // says that it is 0xffff in place of 0
	}
	for _, f := range ask {
		args = append(args, "-e", f)
	}
	var rows [][]string
	for line := range strings.Lines(Tshark(t, ps, args...)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if status >= 0 && row[len(fields)] != "" {
			row[status] = "1"
		}
		rows = append(rows, row[:len(fields)])
	}
	return rows
}
