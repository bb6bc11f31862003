package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"google.golang.org/protobuf/proto"
)

// A series that was pushed, as the Rust test judges it.
type received struct {
	Tenant string            `json:"tenant"`
	Labels map[string]string `json:"labels"`
	// Sums by "type:unit".
	Sums map[string]int64 `json:"sums"`
	// Function names of each stack, leaf first, with its first value.
	Stacks []stack `json:"stacks"`
	From   int64   `json:"from_ns"`
	Length int64   `json:"length_ns"`
	Period string  `json:"period"`
	ID     string  `json:"id"`
}

type stack struct {
	Functions []string `json:"functions"`
	Value     int64    `json:"value"`
}

type pusher struct {
	// How many requests are turned away first.
	away int
}

// Push is a pusher as Pyroscope's protos have it: it prints each series on a line. The first requests are told to come
// again.
func (p *pusher) Push(_ context.Context, request *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	if p.away > 0 {
		p.away--
		return nil, connect.NewError(connect.CodeResourceExhausted, errors.New("come again"))
	}
	for _, series := range request.Msg.Series {
		for _, sample := range series.Samples {
			out, err := read(sample.RawProfile)
			if err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
			out.Tenant, out.ID, out.Labels = request.Header().Get("X-Scope-OrgID"), sample.ID, map[string]string{}
			for _, label := range series.Labels {
				out.Labels[label.Name] = label.Value
			}
			line, err := json.Marshal(out)
			if err != nil {
				fatal("%v", err)
			}
			fmt.Println(string(line))
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func read(raw []byte) (*received, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	profile := new(profilev1.Profile)
	if err := proto.Unmarshal(body, profile); err != nil {
		return nil, err
	}
	text := func(index int64) string { return profile.StringTable[index] }
	locations, functions := map[uint64]*profilev1.Location{}, map[uint64]*profilev1.Function{}
	for _, location := range profile.Location {
		locations[location.Id] = location
	}
	for _, function := range profile.Function {
		functions[function.Id] = function
	}
	period := profile.PeriodType
	out := &received{
		Sums: map[string]int64{}, From: profile.TimeNanos, Length: profile.DurationNanos,
		Period: text(period.Type) + ":" + text(period.Unit),
	}
	for _, sample := range profile.Sample {
		one := stack{Value: sample.Value[0]}
		for _, id := range sample.LocationId {
			for _, line := range locations[id].Line {
				one.Functions = append(one.Functions, text(functions[line.FunctionId].Name))
			}
		}
		out.Stacks = append(out.Stacks, one)
		for place, kind := range profile.SampleType {
			out.Sums[text(kind.Type)+":"+text(kind.Unit)] += sample.Value[place]
		}
	}
	return out, nil
}

// receive serves on a free port, which is the first line, until it is killed or its standard input ends.
func receive(away int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal("%v", err)
	}
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(&pusher{away: away}))
	fmt.Println(listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fatal("%v", http.Serve(listener, mux))
}
