// Bench of vt018_sync_fifo: Synchronous FIFO with sticky errors.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_dout;
    int errortime_dout;
    int errors_empty;
    int errortime_empty;
    int errors_full;
    int errortime_full;
    int errors_level;
    int errortime_level;
    int errors_overflow;
    int errortime_overflow;
    int errors_underflow;
    int errortime_underflow;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       push;
  logic [7:0] din;
  logic       pop;
  wire  [7:0] dout_ref;
  wire  [7:0] dout_dut;
  wire        empty_ref;
  wire        empty_dut;
  wire        full_ref;
  wire        full_dut;
  wire  [2:0] level_ref;
  wire  [2:0] level_dut;
  wire        overflow_ref;
  wire        overflow_dut;
  wire        underflow_ref;
  wire        underflow_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .push(push),
    .din(din),
    .pop(pop),
    .dout(dout_ref),
    .empty(empty_ref),
    .full(full_ref),
    .level(level_ref),
    .overflow(overflow_ref),
    .underflow(underflow_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .push(push),
    .din(din),
    .pop(pop),
    .dout(dout_dut),
    .empty(empty_dut),
    .full(full_dut),
    .level(level_dut),
    .overflow(overflow_dut),
    .underflow(underflow_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_dout = dout_ref ^ dout_ref;
  wire        match_dout = (dout_dut ^ open_dout) === (dout_ref ^ open_dout);
  wire        open_empty = empty_ref ^ empty_ref;
  wire        match_empty = (empty_dut ^ open_empty) === (empty_ref ^ open_empty);
  wire        open_full = full_ref ^ full_ref;
  wire        match_full = (full_dut ^ open_full) === (full_ref ^ open_full);
  wire  [2:0] open_level = level_ref ^ level_ref;
  wire        match_level = (level_dut ^ open_level) === (level_ref ^ open_level);
  wire        open_overflow = overflow_ref ^ overflow_ref;
  wire        match_overflow = (overflow_dut ^ open_overflow) === (overflow_ref ^ open_overflow);
  wire        open_underflow = underflow_ref ^ underflow_ref;
  wire        match_underflow = (underflow_dut ^ open_underflow) === (underflow_ref ^ open_underflow);
  wire        tb_match = match_dout && match_empty && match_full && match_level && match_overflow && match_underflow;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_dout) begin
      if (stats1.errors_dout == 0) stats1.errortime_dout = $time;
      stats1.errors_dout = stats1.errors_dout + 1;
    end
    if (!match_empty) begin
      if (stats1.errors_empty == 0) stats1.errortime_empty = $time;
      stats1.errors_empty = stats1.errors_empty + 1;
    end
    if (!match_full) begin
      if (stats1.errors_full == 0) stats1.errortime_full = $time;
      stats1.errors_full = stats1.errors_full + 1;
    end
    if (!match_level) begin
      if (stats1.errors_level == 0) stats1.errortime_level = $time;
      stats1.errors_level = stats1.errors_level + 1;
    end
    if (!match_overflow) begin
      if (stats1.errors_overflow == 0) stats1.errortime_overflow = $time;
      stats1.errors_overflow = stats1.errors_overflow + 1;
    end
    if (!match_underflow) begin
      if (stats1.errors_underflow == 0) stats1.errortime_underflow = $time;
      stats1.errors_underflow = stats1.errors_underflow + 1;
    end
  end

  integer i;
  reg [2:0] bias;
  initial begin
    reset <= 1'b1;
    push <= 1'b0;
    pop <= 1'b0;
    din <= 8'd1;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    // Fill, push and pop while full, overflow, drain, both while empty, underflow.
    for (i = 0; i < 24; i = i + 1) @(posedge clk) begin
      push <= (i < 10) || (i == 16) || (i == 17);
      pop <= (i >= 5 && i < 8) || (i >= 10);
      din <= 8'd16 + i;
    end
    @(posedge clk) reset <= 1'b1;
    push <= 1'b1;
    pop <= 1'b1;
    @(posedge clk) reset <= 1'b0;
    push <= 1'b0;
    pop <= 1'b0;
    // Random traffic whose balance shifts between filling and draining; rare resets clear the flags.
    repeat (40) begin
      bias = $random;
      repeat (14) @(posedge clk) begin
        push <= ($urandom % 8) < {1'b0, bias} + 1;
        pop <= ($urandom % 8) < 8 - {1'b0, bias};
        din <= $random;
        reset <= ($random & 31) == 0;
      end
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_dout != 0)
      $display("Hint: Output 'dout' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_dout, stats1.errortime_dout);
    else
      $display("Hint: Output 'dout' has no mismatches.");
    if (stats1.errors_empty != 0)
      $display("Hint: Output 'empty' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_empty, stats1.errortime_empty);
    else
      $display("Hint: Output 'empty' has no mismatches.");
    if (stats1.errors_full != 0)
      $display("Hint: Output 'full' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_full, stats1.errortime_full);
    else
      $display("Hint: Output 'full' has no mismatches.");
    if (stats1.errors_level != 0)
      $display("Hint: Output 'level' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_level, stats1.errortime_level);
    else
      $display("Hint: Output 'level' has no mismatches.");
    if (stats1.errors_overflow != 0)
      $display("Hint: Output 'overflow' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_overflow, stats1.errortime_overflow);
    else
      $display("Hint: Output 'overflow' has no mismatches.");
    if (stats1.errors_underflow != 0)
      $display("Hint: Output 'underflow' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_underflow, stats1.errortime_underflow);
    else
      $display("Hint: Output 'underflow' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
