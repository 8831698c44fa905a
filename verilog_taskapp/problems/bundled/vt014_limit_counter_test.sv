// Bench of vt014_limit_counter: up/down counter between limits.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_count;
    int errortime_count;
    int errors_at_limit;
    int errortime_at_limit;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       areset;
  logic       load;
  logic [7:0] value;
  logic       enable;
  logic       up;
  logic       wrap;
  logic [7:0] lo;
  logic [7:0] hi;
  wire  [7:0] count_ref;
  wire  [7:0] count_dut;
  wire        at_limit_ref;
  wire        at_limit_dut;

  RefModule good1 (
    .clk(clk),
    .areset(areset),
    .load(load),
    .value(value),
    .enable(enable),
    .up(up),
    .wrap(wrap),
    .lo(lo),
    .hi(hi),
    .count(count_ref),
    .at_limit(at_limit_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .areset(areset),
    .load(load),
    .value(value),
    .enable(enable),
    .up(up),
    .wrap(wrap),
    .lo(lo),
    .hi(hi),
    .count(count_dut),
    .at_limit(at_limit_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_count = count_ref ^ count_ref;
  wire        match_count = (count_dut ^ open_count) === (count_ref ^ open_count);
  wire        open_at_limit = at_limit_ref ^ at_limit_ref;
  wire        match_at_limit = (at_limit_dut ^ open_at_limit) === (at_limit_ref ^ open_at_limit);
  wire        tb_match = match_count && match_at_limit;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_count) begin
      if (stats1.errors_count == 0) stats1.errortime_count = $time;
      stats1.errors_count = stats1.errors_count + 1;
    end
    if (!match_at_limit) begin
      if (stats1.errors_at_limit == 0) stats1.errortime_at_limit = $time;
      stats1.errors_at_limit = stats1.errors_at_limit + 1;
    end
  end

  reg [7:0] x;
  reg [7:0] y;
  initial begin
    areset <= 1'b1;
    load <= 1'b0;
    value <= 8'd0;
    enable <= 1'b1;
    up <= 1'b1;
    wrap <= 1'b1;
    lo <= 8'd3;
    hi <= 8'd9;
    repeat (2) @(negedge clk);
    areset <= 1'b0;
    // Up from below the lower limit, round twice, stop at the top; then the same downwards.
    repeat (20) @(negedge clk);
    wrap <= 1'b0;
    repeat (8) @(negedge clk);
    up <= 1'b0;
    repeat (9) @(negedge clk);
    wrap <= 1'b1;
    repeat (10) @(negedge clk);
    // The whole range: natural wrap-around.
    lo <= 8'd0;
    hi <= 8'd255;
    load <= 1'b1;
    value <= 8'd253;
    up <= 1'b1;
    @(negedge clk) load <= 1'b0;
    repeat (6) @(negedge clk);
    up <= 1'b0;
    repeat (6) @(negedge clk);
    // Narrow limits that move now and then; loads in, below and above them.
    repeat (500) @(negedge clk) begin
      areset <= ($random & 15) == 0;
      load <= ($random & 15) == 0;
      value <= ($random & 1) ? lo + ($random & 15) - 8'd6 : $random;
      enable <= ($random & 7) != 0;
      if (($random & 15) == 0) up <= $urandom;
      if (($random & 15) == 0) wrap <= $urandom;
      if (($random & 31) == 0) begin
        x = $random;
        y = $urandom & 7;
        lo <= x;
        hi <= (x > 8'd255 - y) ? 8'd255 : x + y;
      end
    end
    @(posedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_count != 0)
      $display("Hint: Output 'count' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_count, stats1.errortime_count);
    else
      $display("Hint: Output 'count' has no mismatches.");
    if (stats1.errors_at_limit != 0)
      $display("Hint: Output 'at_limit' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_at_limit, stats1.errortime_at_limit);
    else
      $display("Hint: Output 'at_limit' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
