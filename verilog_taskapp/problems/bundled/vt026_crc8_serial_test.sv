// Bench of vt026_crc8_serial: Serial CRC-8 with shift-out.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_crc;
    int errortime_crc;
    int errors_bit_out;
    int errortime_bit_out;
    int errors_clean;
    int errortime_clean;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       clear;
  logic       valid;
  logic       bit_in;
  logic       shift;
  wire  [7:0] crc_ref;
  wire  [7:0] crc_dut;
  wire        bit_out_ref;
  wire        bit_out_dut;
  wire        clean_ref;
  wire        clean_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .clear(clear),
    .valid(valid),
    .bit_in(bit_in),
    .shift(shift),
    .crc(crc_ref),
    .bit_out(bit_out_ref),
    .clean(clean_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .clear(clear),
    .valid(valid),
    .bit_in(bit_in),
    .shift(shift),
    .crc(crc_dut),
    .bit_out(bit_out_dut),
    .clean(clean_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_crc = crc_ref ^ crc_ref;
  wire        match_crc = (crc_dut ^ open_crc) === (crc_ref ^ open_crc);
  wire        open_bit_out = bit_out_ref ^ bit_out_ref;
  wire        match_bit_out = (bit_out_dut ^ open_bit_out) === (bit_out_ref ^ open_bit_out);
  wire        open_clean = clean_ref ^ clean_ref;
  wire        match_clean = (clean_dut ^ open_clean) === (clean_ref ^ open_clean);
  wire        tb_match = match_crc && match_bit_out && match_clean;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_crc) begin
      if (stats1.errors_crc == 0) stats1.errortime_crc = $time;
      stats1.errors_crc = stats1.errors_crc + 1;
    end
    if (!match_bit_out) begin
      if (stats1.errors_bit_out == 0) stats1.errortime_bit_out = $time;
      stats1.errors_bit_out = stats1.errors_bit_out + 1;
    end
    if (!match_clean) begin
      if (stats1.errors_clean == 0) stats1.errortime_clean = $time;
      stats1.errors_clean = stats1.errors_clean + 1;
    end
  end

  function [7:0] remainder(input [15:0] message);
    reg [7:0] r;
    integer   n;
    begin
      r = 8'hff;
      for (n = 15; n >= 0; n = n - 1)
        r = (r[7] ^ message[n]) ? (r << 1) ^ 8'h31 : (r << 1);
      remainder = r;
    end
  endfunction

  reg [23:0] word;
  integer i;
  initial begin
    reset <= 1'b1;
    clear <= 1'b0;
    valid <= 1'b1;
    bit_in <= 1'b0;
    shift <= 1'b0;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    // Messages with their own remainder behind them leave zero; pauses and shift orders between the bits.
    repeat (8) begin
      word[23:8] = $random;
      word[7:0] = remainder(word[23:8]);
      clear <= 1'b1;
      valid <= $random;
      shift <= $random;
      @(posedge clk) clear <= 1'b0;
      for (i = 23; i >= 0; i = i - 1) begin
        valid <= 1'b1;
        shift <= $random;
        bit_in <= word[i];
        @(posedge clk);
        if (($urandom & 3) == 0) begin
          valid <= 1'b0;
          shift <= 1'b0;
          bit_in <= $random;
          @(posedge clk);
        end
      end
      valid <= 1'b0;
      shift <= 1'b0;
      @(posedge clk);
    end
    // Shift out completely, from the start value and from random remainders.
    repeat (5) begin
      for (i = 0; i < 10; i = i + 1) begin
        valid <= 1'b1;
        bit_in <= $random;
        @(posedge clk);
      end
      valid <= 1'b0;
      shift <= 1'b1;
      repeat (9) @(posedge clk) bit_in <= $random;
      shift <= 1'b0;
      clear <= $random;
      @(posedge clk) clear <= 1'b0;
    end
    repeat (200) @(posedge clk) begin
      valid <= ($random & 3) != 0;
      bit_in <= $random;
      shift <= ($random & 3) == 0;
      clear <= ($urandom & 31) == 0;
      reset <= ($urandom & 31) == 0;
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
    if (stats1.errors_crc != 0)
      $display("Hint: Output 'crc' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_crc, stats1.errortime_crc);
    else
      $display("Hint: Output 'crc' has no mismatches.");
    if (stats1.errors_bit_out != 0)
      $display("Hint: Output 'bit_out' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_bit_out, stats1.errortime_bit_out);
    else
      $display("Hint: Output 'bit_out' has no mismatches.");
    if (stats1.errors_clean != 0)
      $display("Hint: Output 'clean' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_clean, stats1.errortime_clean);
    else
      $display("Hint: Output 'clean' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
