package tool

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident returns the memory of processes, in MiB.
func Resident(pids ...int) (sum float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kb, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("VmRSS of process %d: %w", pid, err)
		}
		sum += kb / 1024
	}
	return sum, nil
}

// CPU returns the processor time of processes, in seconds.
func CPU(pids ...int) (sum float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] { // user and system
			ticks, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return 0, fmt.Errorf("time of process %d: %w", pid, err)
			}
			sum += ticks / 100
		}
	}
	return sum, nil
}
