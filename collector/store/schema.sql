-- SPDX-License-Identifier: Apache-2.0
-- trace.db: everything Rankscope knows about one run. This file is the only DDL; docs and readers follow it.
--
-- Conventions. Times are int64 nanoseconds on the job clock: 0 is the first recorded event of the run (meta.start_unix_ns tells its wall-clock time),
-- and the clock is that of the reference host (see clock_model). *_ns is a time or a duration (dur_ns), bytes are bytes. Texts live in `string`.
-- Event tables are written sorted by (rank, start_ns): all rows of a rank are one contiguous id range (see extent), so a range of time in a rank is found
-- by bisecting ids and needs no index. NULL means unknown. -1 in a *_id column never occurs. 64-bit hashes are stored as the signed integer of the same bits.

PRAGMA user_version = 1;  -- schema version: raised with every incompatible change

CREATE TABLE meta (
  key TEXT PRIMARY KEY,            -- schema_version, tool_version, run_name, source (capture|kineto|nsys|flight_recorder|mapped|nccl_inspector|nccl_profiler|rocprofv3|rocpd|xplane; of an export that was imported again that of its run), virtual (0|1), start_unix_ns, duration_ns,
                                   -- world_size (0: unknown), links (of --links as given), env.NAME (allow-listed environment of rank 0), nccl_version, cuda_version, overhead_ns (CUPTI's own of rank 0's process, by its overhead records), overhead.KIND_ns (parts of it),
                                   -- exit_status (of the wrapped command, as a shell tells it, 128 + signal), stop_signal (that `rankscope run` was sent from outside), end_unix_ns (when the command ended; not of virtual time), absent where
                                   -- nobody told; link_peaks (JSON, of `rankscope analyze`: what it took for the links' peaks, and where from),
                                   -- analysis.verdict, analysis.not_judged (lines) and analysis.places (JSON: by rank its place in "dp", "tp", "pp", "ep"), as the last `rankscope analyze` told them, job_world_size (imports: ranks of the job),
                                   -- imported_from ("export": of a file that `rankscope export` wrote, else absent),
                                   -- host_operations ("recorded": an imported trace told its CPU operators, see nvtx.domain_id; "all": each is a row),
                                   -- light ("1": recorded without device activity; kernels are NCCL's, by the channels of its profiler plugin; "kernels": the same, and kernels as summaries in kernel_summary),
                                   -- told_pipelines (imports by a mapping without messages: "1f1b 16;0 1 2 3": schedule, micro-batches, and the ranks of each pipeline by stage),
                                   -- dump (reason of a dump of light mode's ring: trigger, signal, hang, slow_step),
                                   -- torch_dump_version (of imported flight-recorder dumps),
                                   -- start_env ("recorded", else absent), start_env.NAME (NCCL_ALGO and NCCL_PROTO where `rankscope run` was started), run_env.NAME (of its --env),
                                   -- shards (of a trace.db whose events lie in shards: what tells them from those of another collection), shard_of (in a shard: the same)
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE string (
  id INTEGER PRIMARY KEY,          -- 1, 2… in order of first appearance in the sorted tables
  text TEXT NOT NULL               -- UTF-8; invalid bytes replaced by U+FFFD
);

CREATE TABLE symbol (              -- names of C++ functions with their parameters, mangled or not, as people read them; missing in traces older than this table
  string_id INTEGER PRIMARY KEY REFERENCES string(id),
  demangled_id INTEGER NOT NULL REFERENCES string(id),
  short_id INTEGER NOT NULL REFERENCES string(id)  -- without namespaces, template arguments and parameters
);

CREATE TABLE host (
  id INTEGER PRIMARY KEY,          -- 0, 1… by lowest rank on it
  name TEXT NOT NULL,
  boot_id TEXT
);

CREATE TABLE clock_model (         -- job time = host time + offset_ns + drift_ppb * (host time - anchor_ns) / 1e9
  host_id INTEGER PRIMARY KEY REFERENCES host(id),
  method TEXT NOT NULL,            -- reference | same_host | collectives | none
  anchor_ns INTEGER NOT NULL,      -- host time at which offset_ns holds
  offset_ns INTEGER NOT NULL,
  drift_ppb INTEGER NOT NULL,      -- parts per billion
  bound_ns INTEGER NOT NULL,       -- largest error of an aligned time of this host against the reference host
  samples INTEGER NOT NULL         -- matched collectives that the estimate rests on
);

CREATE TABLE process (
  id INTEGER PRIMARY KEY,          -- 0, 1… by (rank, attempt, start)
  host_id INTEGER NOT NULL REFERENCES host(id),
  pid INTEGER NOT NULL,
  parent_pid INTEGER,
  attempt INTEGER NOT NULL,        -- elastic restart count, 0 first
  executable TEXT,
  start_ns INTEGER,
  end_ns INTEGER,                  -- last sign of life
  end_kind TEXT NOT NULL,          -- exit | _exit | signal | exec | vanished (no farewell: killed or power lost) | running (when it was collected) | unknown (the end of the file is missing)
  end_code INTEGER,                -- exit status or signal number
  identity_source TEXT,            -- torchrun | openmpi | pmix | pmi | slurm | nccl | trace | none
  capture_file TEXT                -- file name below the run directory, or the imported file
);

CREATE TABLE rank (
  rank INTEGER PRIMARY KEY,        -- global rank
  process_id INTEGER REFERENCES process(id),  -- NULL: the rank left no capture
  host_id INTEGER REFERENCES host(id),
  local_rank INTEGER,
  device_id INTEGER REFERENCES device(id),
  state TEXT NOT NULL              -- complete | died | missing | running (when it was collected) | unknown (how it ended is not recorded)
);

CREATE TABLE device (
  id INTEGER PRIMARY KEY,          -- 0, 1… by (host, ordinal)
  host_id INTEGER NOT NULL REFERENCES host(id),
  ordinal INTEGER NOT NULL,        -- CUDA ordinal in the process
  name TEXT,
  memory_bytes INTEGER,
  multiprocessors INTEGER,
  compute_capability INTEGER       -- major * 10 + minor
);

CREATE TABLE machine_link (        -- what joins a host's devices to each other and to other hosts, as the machine says; missing in traces older than this
  id INTEGER PRIMARY KEY,          -- 1, 2… by (host, rank, kind, name), those of the host first
  host_id INTEGER NOT NULL REFERENCES host(id),
  rank INTEGER,                    -- whose device it belongs to; NULL: the host's
  kind TEXT NOT NULL,              -- nvlink | pcie | infiniband | ethernet
  name TEXT NOT NULL,              -- "NVLink", "PCIe", device and port of an InfiniBand adapter ("mlx5_0/1"), network interface ("eth0")
  count INTEGER NOT NULL,          -- links that are up: NVLinks, PCIe lanes, 1 for a port
  generation INTEGER,              -- NVLink version or PCIe generation
  bytes_per_s INTEGER,             -- one direction, of all `count` together, at the speed they run at (PCIe: its highest generation, as idle links rest); encoding is taken off, headers are not
  source TEXT NOT NULL             -- nvml | sysfs
);

CREATE TABLE thread (
  id INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process(id),
  rank INTEGER,
  tid INTEGER,
  name TEXT
);

CREATE TABLE stream (
  id INTEGER PRIMARY KEY,          -- 1, 2… by (rank, device, context, native id)
  rank INTEGER NOT NULL,
  device_id INTEGER REFERENCES device(id),
  context INTEGER NOT NULL,
  native_id INTEGER NOT NULL,      -- CUPTI's stream id
  handle INTEGER,                  -- cudaStream_t where known
  priority INTEGER
);

CREATE TABLE communicator (
  id INTEGER PRIMARY KEY,          -- 1, 2… by (first use, smallest member)
  hash INTEGER NOT NULL,           -- identity across ranks
  identity TEXT NOT NULL,          -- comm_hash (NCCL's own) | unique_id | process_group (imported) | inferred | assumed (one rank alone)
  n_ranks INTEGER NOT NULL,        -- size NCCL told
  parent_id INTEGER REFERENCES communicator(id),
  name TEXT,                       -- NCCL's commName or the framework's process group description
  node_count INTEGER NOT NULL      -- hosts its recorded members are on
);

CREATE TABLE communicator_member (
  communicator_id INTEGER NOT NULL REFERENCES communicator(id),
  comm_rank INTEGER NOT NULL,      -- rank in the communicator
  rank INTEGER NOT NULL,           -- global rank
  create_ns INTEGER,
  destroy_ns INTEGER,              -- NULL: never destroyed in the recording
  end_kind TEXT,                   -- destroy | abort | finalize
  PRIMARY KEY (communicator_id, comm_rank)
) WITHOUT ROWID;

CREATE TABLE kernel (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  stream_id INTEGER NOT NULL REFERENCES stream(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  name_id INTEGER NOT NULL REFERENCES string(id),
  correlation_id INTEGER,          -- joins api_call.correlation_id of the same rank; NULL in a trace without it
  nccl INTEGER NOT NULL,           -- 0 compute; 1 NCCL kernel known by its call (external correlation, plugin or trace metadata); 2 by its name only
  grid_blocks INTEGER,
  block_threads INTEGER,
  graph_node INTEGER               -- CUDA graph node id; NULL when launched directly
);

CREATE TABLE memcpy (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  stream_id INTEGER NOT NULL REFERENCES stream(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  kind INTEGER NOT NULL,           -- CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP
  src_memory INTEGER,              -- CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device
  dst_memory INTEGER,
  correlation_id INTEGER
);

CREATE TABLE memset (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  stream_id INTEGER NOT NULL REFERENCES stream(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  correlation_id INTEGER
);

CREATE TABLE api_call (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  thread_id INTEGER NOT NULL REFERENCES thread(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  name_id INTEGER NOT NULL REFERENCES string(id),  -- cudaLaunchKernel, cudaStreamSynchronize…
  kind INTEGER NOT NULL,           -- 0 other, 1 launch, 2 copy, 3 set, 4 allocate, 5 free, 6 synchronise (blocks the host), 7 event record or wait, 8 graph launch
  source INTEGER NOT NULL,         -- 1 hook, 2 CUPTI runtime, 3 CUPTI driver, 4 imported
  correlation_id INTEGER,          -- CUPTI's; NULL for hooks
  argument INTEGER                 -- bytes or stream handle, from the hook
);

CREATE TABLE synchronization (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  stream_id INTEGER REFERENCES stream(id),  -- NULL: the whole context
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  kind INTEGER NOT NULL,           -- CUpti_ActivitySynchronizationType: 1 event, 2 stream wait event, 3 stream, 4 context
  event_id INTEGER,
  correlation_id INTEGER
);

CREATE TABLE cuda_event (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, time_ns)
  rank INTEGER NOT NULL,
  stream_id INTEGER NOT NULL REFERENCES stream(id),
  time_ns INTEGER NOT NULL,
  event_id INTEGER NOT NULL,
  correlation_id INTEGER
);

CREATE TABLE allocation (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  thread_id INTEGER REFERENCES thread(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  free INTEGER NOT NULL,           -- 0 allocate, 1 free
  bytes INTEGER,                   -- of one that was refused 0; of a free those that its address was allocated with, NULL: before the recording, or unknown
  name_id INTEGER NOT NULL REFERENCES string(id)
);

CREATE TABLE failed_allocation (   -- calls that the driver refused, out of memory; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- 1, 2… by (rank, time)
  rank INTEGER NOT NULL,
  refused_ns INTEGER NOT NULL,
  bytes INTEGER NOT NULL,          -- asked for
  call TEXT NOT NULL               -- cudaMalloc…
);

CREATE TABLE thread_stack (        -- what the threads of a rank that stood still were in (NAME/stacks of `rankscope run`); missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- 1, 2… by (rank, reading, place in the file: native stacks, the main thread's first, then Python's)
  rank INTEGER NOT NULL,
  reading INTEGER NOT NULL,        -- 1, 2… of the rank: all threads of a process are read at about the same time
  read_ns INTEGER,                 -- when; where the recorded time is virtual, the newest that was recorded before; NULL: not known
  stalled_ns INTEGER NOT NULL,     -- for which it had recorded no progress then
  tid INTEGER NOT NULL,            -- that of the main thread is the process's pid
  name TEXT NOT NULL,
  state TEXT,                      -- of native stacks, as in /proc/PID/stat: R runs, S sleeps, D waits for a device, T is stopped
  language TEXT NOT NULL,          -- native | python
  frames TEXT NOT NULL             -- a line each, innermost first: "function+0xoffset (library)" or "function (file:line)"; empty: not read
);

CREATE TABLE device_health (       -- how ranks' devices did, by NVML, about once a second (NAME/health of `rankscope run`); missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- 1, 2… by (rank, time)
  rank INTEGER NOT NULL,           -- whose device it is; ranks that share one have the same rows each
  time_ns INTEGER,                 -- of the reading, of several in one row the first; NULL where the recorded time is virtual, which readings have no place in
  readings INTEGER NOT NULL,       -- in the row: 1 in the first hour, then 2, 4…; clocks, power and utilisation are their means, temperature and memory their highest
  sm_mhz INTEGER,                  -- clock of the multiprocessors; here and below NULL: NVML does not tell, or was not asked this time (counters are read every tenth)
  sm_max_mhz INTEGER,              -- the highest that the device can have
  memory_mhz INTEGER,
  memory_max_mhz INTEGER,
  clocks_events INTEGER,           -- nvmlClocksEventReasons, bits: 1 idle, 2 application clocks, 4 power cap, 8 hardware slowdown, 16 sync boost, 32 thermal (driver), 64 thermal (hardware), 128 power brake
  power_mw INTEGER,
  power_limit_mw INTEGER,          -- enforced
  temperature_c INTEGER,
  ecc_corrected INTEGER,           -- errors that NVML had counted until then, since the driver was loaded
  ecc_uncorrected INTEGER,
  nvlink_errors INTEGER,           -- replays, recoveries and CRC errors of all its NVLinks, likewise
  memory_used_bytes INTEGER,       -- by all processes
  memory_total_bytes INTEGER,
  utilization_percent INTEGER,     -- of the time in which a kernel ran
  xid INTEGER                      -- a critical error (Xid) that the driver told of in that time; NULL: none
);

CREATE TABLE port_counter (        -- what the network ports of hosts had counted, every ten seconds, by sysfs; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- 1, 2… by (host, name, time)
  host_id INTEGER NOT NULL REFERENCES host(id),
  name TEXT NOT NULL,              -- as machine_link.name
  time_ns INTEGER,                 -- as device_health.time_ns
  sent_bytes INTEGER,              -- since the port came up; NULL: its driver does not count it
  received_bytes INTEGER,
  errors INTEGER,                  -- damaged symbols and packets, both ways
  discards INTEGER,                -- packets that were dropped or could not be sent
  link_downs INTEGER               -- times that the link went down or had to recover
);

CREATE TABLE nvtx (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  thread_id INTEGER REFERENCES thread(id),
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER,                  -- NULL: never closed; 0: a mark
  kind INTEGER NOT NULL,           -- 1 push/pop range, 2 start/end range, 3 mark
  domain_id INTEGER REFERENCES string(id),  -- NULL: the default domain; imported: gpu_user_annotation, cpu_op, python_function (of the last two only what tells what
                                   -- the host did while the device stood idle for over 1 ms, and operations that took 20 times longer than usual)
  name_id INTEGER NOT NULL REFERENCES string(id),
  depth INTEGER NOT NULL,          -- 0 outermost push/pop range of its thread
  color INTEGER,
  category INTEGER,
  payload INTEGER                  -- of cpu_op and python_function: median duration of that name in the trace, ns; NULL: under five of them
);

CREATE TABLE nccl_call (
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  thread_id INTEGER REFERENCES thread(id),
  communicator_id INTEGER REFERENCES communicator(id),
  start_ns INTEGER NOT NULL,       -- of the call on the host
  dur_ns INTEGER NOT NULL,
  op TEXT NOT NULL,                -- all_reduce | all_gather | reduce_scatter | broadcast | reduce | all_to_all | gather | scatter | send | recv | unknown
  seq INTEGER,                     -- k-th collective (0-based) of this member on the communicator; for send/recv the k-th with that peer and direction. Of a flight recorder
                                   -- PyTorch's own number (1-based, as in its messages); messages count from the first that a dump of either side holds
  count INTEGER,                   -- elements, as passed
  data_type TEXT,                  -- i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 f8e4m3 f8e5m2
  bytes INTEGER,                   -- as nccl-tests counts them: all_gather, reduce_scatter, all_to_all: n x the per-rank chunk; send/recv: the message
  reduce_op INTEGER,               -- ncclRedOp_t
  peer INTEGER,                    -- rank in the communicator: peer of send/recv, root of a rooted collective
  stream_id INTEGER REFERENCES stream(id),
  group_id INTEGER,                -- calls of one ncclGroupStart/End share it (per rank); NULL outside a group
  kernel_id INTEGER REFERENCES kernel(id),  -- kernel that carried it; calls of a group may share one; NULL unknown
  algorithm TEXT,                  -- ring | tree | nvls | nvls_tree | collnet_direct | collnet_chain | pat; NULL unknown: never taken from a kernel's name
  protocol TEXT,                   -- ll | ll128 | simple
  channels INTEGER,
  evidence INTEGER NOT NULL        -- bits: 1 hook, 2 NVTX payload, 4 profiler plugin, 8 external correlation, 16 imported metadata, 32 inferred
);

CREATE TABLE recorder_call (       -- of imported dumps of PyTorch's flight recorder: how far its process saw a call get; missing in traces older than this table
  call_id INTEGER PRIMARY KEY REFERENCES nccl_call(id),
  state TEXT NOT NULL,             -- scheduled | started (seen only where the job ran with TORCH_NCCL_ENABLE_TIMING) | completed
  started_ns INTEGER,              -- when the process noticed, up to its watchdog's period later than it was so
  completed_ns INTEGER,
  timeout_ns INTEGER,              -- after which the watchdog takes it for hung
  place TEXT                       -- "function (file:line)" that called it, the innermost outside of PyTorch
);

CREATE TABLE recorder_group (      -- members of the process groups of such dumps, those without a dump, too; missing in traces older than this table
  communicator_id INTEGER NOT NULL REFERENCES communicator(id),
  comm_rank INTEGER NOT NULL,
  rank INTEGER NOT NULL,           -- global
  enqueued INTEGER,                -- seq of the last collective that it called, 0 before the first; NULL: not told
  completed INTEGER,               -- seq of the last collective that its process saw end
  from_start INTEGER,              -- 1: its dump holds every call since its process began; 0: the ring has dropped the first ones, from where messages count; NULL: no dump
  PRIMARY KEY (communicator_id, comm_rank)
) WITHOUT ROWID;

CREATE TABLE proxy_op (           -- network transfers of NCCL's proxy thread, from its profiler plugin; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,           -- whose process ran the proxy
  communicator_id INTEGER REFERENCES communicator(id),
  call_id INTEGER REFERENCES nccl_call(id),  -- collective or message it belongs to; NULL unknown
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  channel INTEGER NOT NULL,
  peer INTEGER NOT NULL,           -- rank in the communicator at the other end
  is_send INTEGER NOT NULL,        -- 1 sends to peer, 0 receives from it
  bytes INTEGER NOT NULL,
  steps INTEGER NOT NULL,          -- transfers it was made in
  gpu_wait_ns INTEGER NOT NULL,    -- send: for the GPU to fill the buffer; receive: for it to take the data. Each time counts while any step is in that state
  peer_wait_ns INTEGER NOT NULL,   -- send: until the network takes the buffer (the receiver's credit); receive: flush
  network_wait_ns INTEGER NOT NULL,-- send: on the network until it is done; receive: for data
  on_behalf_of INTEGER             -- PXN: rank in its communicator of another process it works for; NULL its own
);

CREATE TABLE kernel_span (         -- of `run --light=kernels`: spans of time, a step each as a rule, whose kernels are told as summaries; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,       -- where a step's mark begins; a second's where the job marks none; those of a rank follow one another
  dur_ns INTEGER NOT NULL,
  compute_ns INTEGER,              -- of it, in which a kernel ran that is not NCCL's; here and below NULL: the process drives several devices
  nccl_ns INTEGER,                 -- in which one of NCCL's ran, by its name
  busy_ns INTEGER,                 -- in which any ran: exposed communication is busy_ns - compute_ns
  other_kinds INTEGER NOT NULL,    -- kinds of kernel (name, launch shape, stream) without a row in kernel_summary: there was no room for them
  other_count INTEGER NOT NULL,    -- kernels of those
  other_ns INTEGER NOT NULL,       -- their durations, added up
  late_count INTEGER NOT NULL      -- of other_count: kernels of earlier spans, which came when those had been told
);

CREATE TABLE kernel_summary (      -- kernels of one kind that began in a kernel_span; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- sorted by (rank, start_ns)
  rank INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,       -- of the span
  dur_ns INTEGER NOT NULL,         -- of the span
  stream_id INTEGER NOT NULL REFERENCES stream(id),
  name_id INTEGER NOT NULL REFERENCES string(id),
  nccl INTEGER NOT NULL,           -- as kernel.nccl
  grid_blocks INTEGER NOT NULL,
  block_threads INTEGER NOT NULL,
  count INTEGER NOT NULL,
  total_ns INTEGER NOT NULL,       -- their durations, added up
  tenth_ns INTEGER NOT NULL,       -- a tenth of them took no longer
  median_ns INTEGER NOT NULL,
  ninth_ns INTEGER NOT NULL,       -- nine tenths took no longer
  longest_ns INTEGER NOT NULL
);

CREATE TABLE counter (             -- values that an imported trace samples, of the rank's device: GPU metrics of Nsight Systems, memory of PyTorch's allocator; missing in traces older than this table
  id INTEGER PRIMARY KEY,          -- sorted by (rank, time_ns)
  rank INTEGER NOT NULL,           -- whose device it is of; of ranks that share one the first alone has them
  time_ns INTEGER NOT NULL,        -- the value holds until the next one of that name; within the time of the rank's other events
  name_id INTEGER NOT NULL REFERENCES string(id),  -- with its unit, as the trace has it: "SMs Active [Throughput %]", "memory allocated on device 0 [bytes]"
  value INTEGER NOT NULL
);

CREATE TABLE collective (
  id INTEGER PRIMARY KEY,          -- sorted by (communicator_id, seq)
  communicator_id INTEGER NOT NULL REFERENCES communicator(id),
  seq INTEGER NOT NULL,
  op TEXT NOT NULL,
  bytes INTEGER,                   -- as nccl_call.bytes
  data_type TEXT,
  algorithm TEXT,
  protocol TEXT,
  members INTEGER NOT NULL,        -- members whose kernel is recorded
  first_arrival_ns INTEGER,
  last_arrival_ns INTEGER,
  last_rank INTEGER,               -- global rank that arrived last; NULL when the clock bound cannot tell
  end_ns INTEGER,                  -- last end
  transfer_ns INTEGER,             -- end - last arrival of all-reduce, all-gather, reduce-scatter, all-to-all; NULL where the op does not define it
  complete INTEGER NOT NULL,       -- 1: every member recorded and op, bytes and dtype agree
  step INTEGER                     -- step index in which it starts, NULL outside
);

CREATE TABLE collective_member (
  collective_id INTEGER NOT NULL REFERENCES collective(id),
  rank INTEGER NOT NULL,
  call_id INTEGER REFERENCES nccl_call(id),
  kernel_id INTEGER REFERENCES kernel(id),
  arrival_ns INTEGER,              -- start of its kernel
  end_ns INTEGER,
  wait_ns INTEGER,                 -- max(0, last arrival - arrival), at most the kernel's duration
  transfer_ns INTEGER,
  PRIMARY KEY (collective_id, rank)
) WITHOUT ROWID;

CREATE TABLE p2p (
  id INTEGER PRIMARY KEY,          -- sorted by (communicator_id, src_rank, dst_rank, seq)
  communicator_id INTEGER NOT NULL REFERENCES communicator(id),
  src_rank INTEGER NOT NULL,       -- global rank
  dst_rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  bytes INTEGER,
  send_call_id INTEGER REFERENCES nccl_call(id),
  recv_call_id INTEGER REFERENCES nccl_call(id),
  send_arrival_ns INTEGER,
  recv_arrival_ns INTEGER,
  send_end_ns INTEGER,
  recv_end_ns INTEGER,
  send_wait_ns INTEGER,
  recv_wait_ns INTEGER,
  transfer_ns INTEGER,             -- receiver's end - max(arrivals); NULL when negative
  complete INTEGER NOT NULL        -- 1: both sides recorded and the sizes agree
);

CREATE TABLE step (
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,           -- 0-based, the same number on every rank
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  warm_up INTEGER NOT NULL,        -- 1: not analysed: the job warms up, or in light mode calls of that step were left out
  PRIMARY KEY (rank, step)
) WITHOUT ROWID;
-- meta.step_source tells how steps were found: nvtx:NAME, updates (they end where the optimizer's updates end), period (of the kernels, or of the calls) or none.

CREATE TABLE loss (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,              -- missing_rank, died, running, unknown_end, ring_full, size_cap, cupti_dropped, cupti_undelivered, torn_tail, bad_block, first_death, unmatched_collective, clock, virtual_times, source_refused, source_absent, duplicate_rank, step_marks, stacks, health, light, no_kernel_summaries, calls_left_out, dump, shared_device, …
  severity TEXT NOT NULL,          -- info | warning | error
  rank INTEGER,
  source TEXT,                     -- hooks | cupti | nvtx | nccl_plugin | injector | nccl_tuner | collector | importer
  count INTEGER NOT NULL,          -- of what the message names: records, blocks of a file (torn_tail, bad_block), calls, files, ranks
  file TEXT,
  offset INTEGER,                  -- byte offset in file
  message TEXT NOT NULL            -- what it means for the reader of a report
);

CREATE TABLE source_status (
  rank INTEGER NOT NULL,
  source TEXT NOT NULL,
  state TEXT NOT NULL,             -- live | refused | taken | shut_down | not_asked
  code INTEGER,
  message TEXT,
  PRIMARY KEY (rank, source)
) WITHOUT ROWID;

CREATE TABLE extent (              -- the contiguous ids of one rank in one event table
  table_name TEXT NOT NULL,
  rank INTEGER NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,        -- inclusive
  max_dur_ns INTEGER NOT NULL,     -- longest event: how far before a window an overlapping event may start
  PRIMARY KEY (table_name, rank)
) WITHOUT ROWID;

CREATE TABLE shard (               -- ranks whose events lie in a file of their host's, trace.d/FILE beside this one, with the same tables; their extents stand here, too. Missing in traces older than this
  rank INTEGER PRIMARY KEY,
  file TEXT NOT NULL               -- its name in the folder trace.d
);

-- Written by `analyze`; replaced as a whole each time.

CREATE TABLE attribution (
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  step_ns INTEGER NOT NULL,        -- = compute + exposed_wait + exposed_transfer + overlapped_comm… : compute_ns + exposed_comm_ns + memory_ns + idle_ns
  compute_ns INTEGER NOT NULL,     -- |C|, overlapped communication included
  exposed_comm_ns INTEGER NOT NULL,-- |N \ C| = exposed_wait_ns + exposed_transfer_ns
  exposed_wait_ns INTEGER NOT NULL,
  exposed_transfer_ns INTEGER NOT NULL,
  overlapped_comm_ns INTEGER NOT NULL,  -- |N and C|, part of compute_ns
  memory_ns INTEGER NOT NULL,      -- |M \ (C or N)|
  idle_ns INTEGER NOT NULL,
  PRIMARY KEY (rank, step)
) WITHOUT ROWID;

CREATE TABLE idle_gap (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  cause TEXT NOT NULL              -- blocking_call | late_launch | allocator | input | dependency | other
);

CREATE TABLE critical_path (       -- the chain of work that the length of the analysed steps is made of, as the replay knows it: on which rank it is when; missing in traces older than this
  start_ns INTEGER NOT NULL,       -- of one stretch; it goes on where the one before it ends
  dur_ns INTEGER NOT NULL,
  rank INTEGER NOT NULL
);

CREATE TABLE rank_activity (       -- what each rank's device did over the whole recording, small: the timeline draws it before it has read any events; missing in traces older than this
  rank INTEGER PRIMARY KEY,
  start_ns INTEGER NOT NULL,       -- its first activity
  bin_ns INTEGER NOT NULL,         -- length of a bin; 2,048 of them reach to its last activity
  shares BLOB NOT NULL             -- five bytes a bin, 255ths of it: compute alone, compute beside communication, waiting for other ranks alone (known waits), transfer alone, copies and sets alone; 1 where there is any. None at all where the device did nothing
);

CREATE TABLE cost_fit (            -- transfer time of a collective = alpha + beta x bytes, the line that findings rest on; missing in traces older than this
  communicator_id INTEGER NOT NULL,
  op TEXT NOT NULL,
  alpha_ns REAL NOT NULL,
  beta_ns_per_byte REAL NOT NULL,
  ceiling_bytes_per_ns REAL,       -- highest possible bus bandwidth; NULL: no link peak is known
  source TEXT NOT NULL,            -- fit | link peak as prior…
  group_name TEXT NOT NULL,        -- what the communicator is and whose: "data parallel 0-7"
  PRIMARY KEY (communicator_id, op)
) WITHOUT ROWID;

CREATE TABLE finding (
  id INTEGER PRIMARY KEY,          -- rank order of the report
  diagnosis TEXT NOT NULL,         -- RS101…
  title TEXT NOT NULL,
  verdict TEXT NOT NULL,           -- found | inconclusive | note
  severity REAL NOT NULL,          -- share of the step that its repair saves, 0..1; that it takes, where that is unknown
  saving_ns_per_step INTEGER,      -- NULL where the repair could not be replayed
  start_ns INTEGER,                -- window in which the evidence is best seen
  end_ns INTEGER,
  report_json TEXT NOT NULL        -- the finding as in rankscope.report/1
);

CREATE TABLE finding_evidence (
  finding_id INTEGER NOT NULL REFERENCES finding(id),
  table_name TEXT NOT NULL,
  row_id INTEGER NOT NULL,
  rank INTEGER,
  note TEXT,
  PRIMARY KEY (finding_id, table_name, row_id)
) WITHOUT ROWID;

-- How far a job got, for one that hung or died.

CREATE VIEW last_collective AS      -- the last collective that each member called on each communicator: enqueued_ns, and where its kernel is recorded, started_ns and finished_ns
  SELECT c.communicator_id, c.rank, c.seq, c.op, c.count, c.bytes, c.data_type, c.peer AS root, c.stream_id, c.start_ns AS enqueued_ns, k.start_ns AS started_ns,
         k.start_ns + k.dur_ns AS finished_ns, c.id AS call_id
  FROM nccl_call c JOIN (SELECT communicator_id, rank, max(seq) AS seq FROM nccl_call WHERE op NOT IN ('send', 'recv') GROUP BY communicator_id, rank) last
    ON last.communicator_id = c.communicator_id AND last.rank = c.rank AND last.seq = c.seq LEFT JOIN kernel k ON k.id = c.kernel_id
  WHERE c.op NOT IN ('send', 'recv');

CREATE VIEW unfinished_call AS      -- collectives and messages that were enqueued and whose kernel never ended, as far as is recorded
  SELECT id AS call_id, rank, communicator_id, seq, op, count, bytes, data_type, peer, stream_id, group_id, start_ns AS enqueued_ns FROM nccl_call WHERE kernel_id IS NULL;

CREATE VIEW last_host_call AS       -- the last call of CUDA that each thread returned from
  SELECT a.rank, a.thread_id, t.text AS name, a.start_ns, a.dur_ns, a.id AS call_id
  FROM api_call a JOIN (SELECT max(id) AS id FROM api_call GROUP BY rank, thread_id) last ON last.id = a.id JOIN string t ON t.id = a.name_id;

CREATE VIEW open_range AS           -- NVTX ranges that nobody closed: what each thread was in
  SELECT n.rank, n.thread_id, t.text AS name, n.start_ns, n.depth, n.id AS nvtx_id FROM nvtx n JOIN string t ON t.id = n.name_id WHERE n.dur_ns IS NULL;

-- Nsight Systems' table and column names, so that existing SQL runs here. A globalPid is the rank, and the process in it as Nsight Systems has it, a globalTid
-- the thread, too: globalTid / 0x1000000 % 0x1000000 is a pid, globalTid % 0x1000000 a tid, globalTid / 0x1000000 = globalPid / 0x1000000 joins a call to the
-- kernels of its own rank (correlation ids repeat on every rank), and globalPid / 0x1000000000000 is the rank. Views cannot be altered: recipes that add columns
-- work on a copy, CREATE TABLE mine AS SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME.

CREATE VIEW StringIds AS SELECT id, text AS value FROM string;

CREATE VIEW PROCESSES AS
  SELECT r.rank << 48 | (p.pid & 0xffffff) << 24 AS globalPid, p.pid AS pid, p.executable AS name FROM rank r JOIN process p ON p.id = r.process_id;

CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
  SELECT k.start_ns AS start, k.start_ns + k.dur_ns AS "end", d.ordinal AS deviceId, s.context AS contextId, s.native_id AS streamId,
         k.correlation_id AS correlationId, k.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 AS globalPid,
         ifnull(y.demangled_id, k.name_id) AS demangledName, ifnull(y.short_id, k.name_id) AS shortName, k.name_id AS mangledName,
         k.grid_blocks AS gridX, 1 AS gridY, 1 AS gridZ, k.block_threads AS blockX, 1 AS blockY, 1 AS blockZ, k.graph_node AS graphNodeId
  FROM kernel k JOIN stream s ON s.id = k.stream_id LEFT JOIN device d ON d.id = s.device_id LEFT JOIN symbol y ON y.string_id = k.name_id
       LEFT JOIN rank r ON r.rank = k.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS
  SELECT m.start_ns AS start, m.start_ns + m.dur_ns AS "end", d.ordinal AS deviceId, s.context AS contextId, s.native_id AS streamId,
         m.correlation_id AS correlationId, m.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 AS globalPid, m.bytes AS bytes, m.kind AS copyKind,
         m.src_memory - 1 AS srcKind, m.dst_memory - 1 AS dstKind  -- ENUM_CUDA_MEM_KIND counts from 0, CUPTI from 1
  FROM memcpy m JOIN stream s ON s.id = m.stream_id LEFT JOIN device d ON d.id = s.device_id LEFT JOIN rank r ON r.rank = m.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS
  SELECT m.start_ns AS start, m.start_ns + m.dur_ns AS "end", d.ordinal AS deviceId, s.context AS contextId, s.native_id AS streamId,
         m.correlation_id AS correlationId, m.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 AS globalPid, m.bytes AS bytes
  FROM memset m JOIN stream s ON s.id = m.stream_id LEFT JOIN device d ON d.id = s.device_id LEFT JOIN rank r ON r.rank = m.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS
  SELECT a.start_ns AS start, a.start_ns + a.dur_ns AS "end", a.correlation_id AS correlationId, a.name_id AS nameId,
         a.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 | (ifnull(t.tid, 0) & 0xffffff) AS globalTid
  FROM api_call a LEFT JOIN thread t ON t.id = a.thread_id LEFT JOIN rank r ON r.rank = a.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS
  SELECT y.start_ns AS start, y.start_ns + y.dur_ns AS "end", y.kind AS syncType, d.ordinal AS deviceId, s.context AS contextId, s.native_id AS streamId,
         y.event_id AS eventId, y.correlation_id AS correlationId, y.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 AS globalPid
  FROM synchronization y LEFT JOIN stream s ON s.id = y.stream_id LEFT JOIN device d ON d.id = s.device_id
       LEFT JOIN rank r ON r.rank = y.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW NVTX_EVENTS AS
  SELECT n.start_ns AS start, n.start_ns + n.dur_ns AS "end", CASE n.kind WHEN 1 THEN 59 WHEN 2 THEN 60 ELSE 34 END AS eventType,
         t.text AS text, n.name_id AS textId, n.rank << 48 | (ifnull(p.pid, 0) & 0xffffff) << 24 | (ifnull(h.tid, 0) & 0xffffff) AS globalTid,
         n.color AS color, n.category AS category, n.domain_id AS domainId
  FROM nvtx n JOIN string t ON t.id = n.name_id LEFT JOIN thread h ON h.id = n.thread_id
       LEFT JOIN rank r ON r.rank = n.rank LEFT JOIN process p ON p.id = r.process_id;

CREATE VIEW ENUM_CUDA_MEMCPY_OPER AS
  WITH kinds(id, name, label) AS (VALUES (0, 'UNKNOWN', 'Unknown'), (1, 'HTOD', 'Host-to-Device'), (2, 'DTOH', 'Device-to-Host'), (3, 'HTOA', 'Host-to-Array'),
    (4, 'ATOH', 'Array-to-Host'), (5, 'ATOA', 'Array-to-Array'), (6, 'ATOD', 'Array-to-Device'), (7, 'DTOA', 'Device-to-Array'), (8, 'DTOD', 'Device-to-Device'),
    (9, 'HTOH', 'Host-to-Host'), (10, 'PTOP', 'Peer-to-Peer'))
  SELECT id, 'CUDA_MEMCPY_KIND_' || name AS name, label FROM kinds;

CREATE VIEW ENUM_CUDA_MEM_KIND AS
  WITH kinds(id, name, label) AS (VALUES (0, 'PAGEABLE', 'Pageable'), (1, 'PINNED', 'Pinned'), (2, 'DEVICE', 'Device'), (3, 'ARRAY', 'Array'), (4, 'MANAGED', 'Managed'),
    (5, 'DEVICE_STATIC', 'Device Static'), (6, 'MANAGED_STATIC', 'Managed Static'))
  SELECT id, 'CUDA_MEMOPR_MEMORY_KIND_' || name AS name, label FROM kinds;
