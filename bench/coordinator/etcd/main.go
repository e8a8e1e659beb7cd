// Puts from many senders and five watchers on one etcd: the same load as bench-coordinator.
//
//	etcd-bench ENDPOINT SENDERS MESSAGES
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const nodes = 5

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	endpoint := os.Args[1]
	senders, err := strconv.Atoi(os.Args[2])
	check(err)
	messages, err := strconv.Atoi(os.Args[3])
	check(err)
	begun := time.Now()
	sent := make([]int64, messages)
	seen := make([]int32, messages)
	waits := make(chan int64, messages)
	clients := make([]*clientv3.Client, nodes)
	ctx := context.Background()
	for i := range clients {
		clients[i], err = clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
		check(err)
		watch := clients[i].Watch(ctx, "bench/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		<-watch
		go func() {
			for response := range watch {
				for _, event := range response.Events {
					number := binary.BigEndian.Uint64(event.Kv.Value)
					if atomic.AddInt32(&seen[number], 1) == nodes {
						waits <- time.Since(begun).Nanoseconds() - atomic.LoadInt64(&sent[number])
					}
				}
			}
		}()
	}
	start := time.Now()
	var group sync.WaitGroup
	for first := 0; first < senders; first++ {
		group.Add(1)
		go func(first int) {
			defer group.Done()
			client := clients[first%nodes]
			for number := first; number < messages; number += senders {
				value := make([]byte, 8)
				binary.BigEndian.PutUint64(value, uint64(number))
				atomic.StoreInt64(&sent[number], time.Since(begun).Nanoseconds())
				_, err := client.Put(ctx, fmt.Sprintf("bench/%08d", number), string(value))
				check(err)
			}
		}(first)
	}
	group.Wait()
	all := make([]int64, 0, messages)
	for len(all) < messages {
		all = append(all, <-waits)
	}
	span := time.Since(start)
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(part float64) float64 { return float64(all[int(float64(messages-1)*part)]) / 1e6 }
	fmt.Printf("%d %d %.0f %.3f %.3f\n", senders, messages, float64(messages)/span.Seconds(), at(0.5), at(0.99))
}
