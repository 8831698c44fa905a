// Bench of vt030_gcd_engine: greatest common divisor engine.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_busy;
    int errortime_busy;
    int errors_done;
    int errortime_done;
    int errors_result;
    int errortime_result;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       areset;
  logic       start;
  logic [7:0] a;
  logic [7:0] b;
  wire        busy_ref;
  wire        busy_dut;
  wire        done_ref;
  wire        done_dut;
  wire  [7:0] result_ref;
  wire  [7:0] result_dut;

  RefModule good1 (
    .clk(clk),
    .areset(areset),
    .start(start),
    .a(a),
    .b(b),
    .busy(busy_ref),
    .done(done_ref),
    .result(result_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .areset(areset),
    .start(start),
    .a(a),
    .b(b),
    .busy(busy_dut),
    .done(done_dut),
    .result(result_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_busy = busy_ref ^ busy_ref;
  wire        match_busy = (busy_dut ^ open_busy) === (busy_ref ^ open_busy);
  wire        open_done = done_ref ^ done_ref;
  wire        match_done = (done_dut ^ open_done) === (done_ref ^ open_done);
  wire  [7:0] open_result = result_ref ^ result_ref;
  wire        match_result = (result_dut ^ open_result) === (result_ref ^ open_result);
  wire        tb_match = match_busy && match_done && match_result;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_busy) begin
      if (stats1.errors_busy == 0) stats1.errortime_busy = $time;
      stats1.errors_busy = stats1.errors_busy + 1;
    end
    if (!match_done) begin
      if (stats1.errors_done == 0) stats1.errortime_done = $time;
      stats1.errors_done = stats1.errors_done + 1;
    end
    if (!match_result) begin
      if (stats1.errors_result == 0) stats1.errortime_result = $time;
      stats1.errors_result = stats1.errors_result + 1;
    end
  end

  integer i;
  reg [7:0] factor;
  // Starts, and changes the operands as soon as they were taken.
  task run(input [7:0] p, input [7:0] q, input integer cycles);
    begin
      start <= 1'b1;
      a <= p;
      b <= q;
      @(negedge clk) start <= 1'b0;
      a <= $random;
      b <= $random;
      repeat (cycles) @(negedge clk);
    end
  endtask

  initial begin
    areset <= 1'b1;
    start <= 1'b1;
    a <= 8'd4;
    b <= 8'd2;
    repeat (2) @(negedge clk);
    start <= 1'b0;
    areset <= 1'b0;
    repeat (2) @(negedge clk);
    run(0, 0, 3);
    run(9, 0, 3);
    run(0, 9, 5);
    run(7, 7, 6);
    run(6, 4, 8);
    run(255, 85, 9);
    run(240, 255, 24);
    run(233, 144, 32);
    run(150, 1, 156);
    // Multiples of one factor, starts at any time, also while busy and in the cycle of done.
    repeat (24) begin
      factor = 1 + ($urandom % 16);
      for (i = 0; i < 14; i = i + 1) begin
        start <= ($random & 3) != 0;
        a <= factor * ($random & 15);
        b <= factor * ($urandom & 15);
        if (($random & 15) == 0) b <= 8'd0;
        areset <= ($urandom & 31) == 0;
        @(negedge clk);
      end
    end
    start <= 1'b0;
    areset <= 1'b0;
    repeat (20) @(negedge clk);
    @(posedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_busy != 0)
      $display("Hint: Output 'busy' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_busy, stats1.errortime_busy);
    else
      $display("Hint: Output 'busy' has no mismatches.");
    if (stats1.errors_done != 0)
      $display("Hint: Output 'done' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_done, stats1.errortime_done);
    else
      $display("Hint: Output 'done' has no mismatches.");
    if (stats1.errors_result != 0)
      $display("Hint: Output 'result' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_result, stats1.errortime_result);
    else
      $display("Hint: Output 'result' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
