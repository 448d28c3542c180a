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
		n, err := mebibytes(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Slab returns the memory of the kernel's tables, in MiB.
func Slab() (float64, error) { return mebibytes("/proc/meminfo", "Slab") }

// mebibytes returns a value of a file that has them in kB.
func mebibytes(file, key string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+key+":")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", key, file, err)
	}
	return kb / 1024, nil
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
