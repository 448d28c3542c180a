package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// A Throughput is a measurement of iperf3, at the receiver where there are two sides.
type Throughput struct {
	BitsPerSecond float64 // received
	Bytes         int64   // received; without what is in flight when the client ends
	Retransmits   int     // of TCP, by the sender
	Packets       int     // of UDP, sent
	Lost          int     // of these, not received
}

type sum struct {
	BPS         float64 `json:"bits_per_second"`
	Bytes       int64
	Retransmits int
	Packets     int
	Lost        int `json:"lost_packets"`
}

// ReadIPerf reads the report of "iperf3 -J".
func ReadIPerf(out []byte) (t Throughput, err error) {
	var report struct {
		Error string
		End   struct {
			Sum      sum
			Sent     sum `json:"sum_sent"`
			Received sum `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return t, fmt.Errorf("iperf3: %w: %s", err, Tail(out))
	}
	if report.Error != "" {
		return t, errors.New("iperf3: " + report.Error)
	}
	e := report.End
	return Throughput{BitsPerSecond: e.Received.BPS, Bytes: e.Received.Bytes, Retransmits: e.Sent.Retransmits,
		Packets: e.Sum.Packets, Lost: e.Sum.Lost}, nil
}

// String is one line for a log.
func (r Throughput) String() string {
	s := strconv.FormatFloat(r.BitsPerSecond/1e9, 'f', 3, 64) + " Gbit/s"
	if r.Packets > 0 {
		return s + ", lost " + strconv.Itoa(r.Lost) + " of " + strconv.Itoa(r.Packets)
	}
	return s + ", retransmits " + strconv.Itoa(r.Retransmits)
}
