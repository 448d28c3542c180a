package netns

import (
	"encoding/json"
	"slices"
	"strconv"
)

// A Throughput is what iperf3 measured, at the receiver where there are two sides.
type Throughput struct {
	BitsPerSecond float64 // received
	Bytes         int     // received; what is under way when the client ends is not in
	Retransmits   int     // of TCP, by the sender
	Packets       int     // of UDP, sent
	Lost          int     // of these, not received
}

// IPerf runs iperf3 from the host to a server at addr, which it starts on another
// host, and returns what was measured. The args are those of the client: "-u", "-R",
// "-t" and so on; without "-t", "-n" or "-k" among them it runs for a second. It ends
// the test when iperf3 fails.
func (h *Host) IPerf(server *Host, addr string, args ...string) Throughput {
	h.t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return a == "-t" || a == "-n" || a == "-k" }) {
		args = append([]string{"-t", "1"}, args...)
	}
	s := server.Start("iperf3", "-s", "-1", "--forceflush")
	s.Want("Server listening")
	// Standard output only: iperf3 warns on the other.
	out := h.Run("sh", append([]string{"-c", `exec iperf3 "$@" 2>/dev/null`, "iperf3", "-J", "-c", addr}, args...)...)
	var report struct {
		Error string
		End   struct {
			Sum      sum
			Sent     sum `json:"sum_sent"`
			Received sum `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Error != "" {
		h.t.Fatalf("lab: host %s: iperf3 -c %s: %v %s\n%s", h.Name, addr, err, report.Error, out)
	}
	if err := s.Wait(); err != nil {
		h.t.Fatalf("lab: host %s: iperf3 -s: %v\n%s", server.Name, err, s.Output())
	}
	e := report.End
	return Throughput{BitsPerSecond: e.Received.BPS, Bytes: e.Received.Bytes, Retransmits: e.Sent.Retransmits,
		Packets: e.Sum.Packets, Lost: e.Sum.Lost}
}

type sum struct {
	BPS         float64 `json:"bits_per_second"`
	Bytes       int
	Retransmits int
	Packets     int
	Lost        int `json:"lost_packets"`
}

// String is one line for a log.
func (r Throughput) String() string {
	s := strconv.FormatFloat(r.BitsPerSecond/1e9, 'f', 3, 64) + " Gbit/s"
	if r.Packets > 0 {
		return s + ", lost " + strconv.Itoa(r.Lost) + " of " + strconv.Itoa(r.Packets)
	}
	return s + ", retransmits " + strconv.Itoa(r.Retransmits)
}
